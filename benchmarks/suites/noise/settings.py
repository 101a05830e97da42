"""What every script of this suite must do alike."""

SCALES = (1, 1000, 10**6)
GUARANTEES = ((0.1, 1e-6), (1.0, 1e-6), (1.0, 1e-10), (5.0, 1e-6))
EPSILON_LAPLACE = 0.5
EPSILON_GAUSSIAN, DELTA_GAUSSIAN = 1.0, 1e-6

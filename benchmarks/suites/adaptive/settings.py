"""What the adaptive suite asks: how many rows, questions and attacks."""

RUNS = 500
ROWS = 100_000
SIZES = (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000)
"""Numbers of questions for which the promises are compared."""
BEARS = ((10_000, 0.1), (100_000, 0.1), (100_000, 0.05), (1_000_000, 0.05), (1_000_000, 0.02))
"""Rows, and how far an answer may be from the population."""

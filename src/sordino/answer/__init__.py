"""What leaves: noisy numbers with intervals, as tables, text and pictures."""

"""Where plans run: one small protocol, one file for each engine."""

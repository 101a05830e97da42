"""What expressions mean: reading columns, functions with their bounds and SQL, domains of keys."""

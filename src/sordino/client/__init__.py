"""A session over HTTP: the same methods as a session that holds the data."""

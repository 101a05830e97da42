"""From a query to a plan: what runs and what it costs, built together, without any data."""

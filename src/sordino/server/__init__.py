"""The server: lend a table to many analysts, people and agents, without giving it away."""

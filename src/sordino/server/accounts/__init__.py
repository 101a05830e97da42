"""Who may do what: people, roles, tokens, passwords, caps and approvals, in one SQLite file of the web process."""

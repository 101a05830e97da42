"""The web process: HTTP, people and previews. It has no access to data and no ledger."""

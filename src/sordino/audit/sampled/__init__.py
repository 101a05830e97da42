"""Black-box audits: run, learn an event, certify it on fresh runs."""

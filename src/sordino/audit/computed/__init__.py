"""Exact audits: laws instead of samples."""

"""Sordino."""

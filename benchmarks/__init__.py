"""Sordino measured beside its peers; a package, since a peer brings one of the same name."""

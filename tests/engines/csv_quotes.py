"""CSV files with quotes, and whether these are in their places: around whole cells, and doubled within them."""

from __future__ import annotations

__all__ = ["QUOTES"]

QUOTES = [
    ('id,city\n1,"x"\n2,"a ""b"" c"\n3,""\n', True),
    ('"id","city"\r\n1,"a\nb,c"\r\n2,""""\r\n', True),
    ('\ufeff"id",city\n1,x\n2,"y"', True),
    # never closed, in a last cell, so that no cell is missing
    ('id,city\n1,"x\n2,y\n3,z\n', False),
    ('id,city\n1,a"b\n2,"x\n3,y\n4,z\n', False),  # as many quotes as there should be
    ('id,city\n1,a"\n2,"x\n3,y\n4,z\n', False),
    ('id,city\n1,x\n2,"x"y\n3,"z"\n', False),
    ('id,city\n1, "x"\n2,y\n', False),
]

"""Randomize before collecting: protocols for clients, and what a collector can learn from their reports."""

from sordino.local.affine import AffineSubset
from sordino.local.choose import Choice, choose, persons_needed
from sordino.local.client import Client
from sordino.local.collect import tally_parquet
from sordino.local.direct import Direct
from sordino.local.estimates import Frequencies, Mean
from sordino.local.hadamard import Hadamard
from sordino.local.hashing import LocalHashing
from sordino.local.heavy_hitters import Found, HeavyHitters
from sordino.local.one_bit import OneBitMean
from sordino.local.protocol import Protocol, protocol_from_json
from sordino.local.repeated import Repeated
from sordino.local.reports import Reports, Tally
from sordino.local.shuffled import shuffled
from sordino.local.subset import Subset
from sordino.local.unary import Unary

__all__ = [
    "AffineSubset",
    "Choice",
    "Client",
    "Direct",
    "Found",
    "Frequencies",
    "Hadamard",
    "HeavyHitters",
    "LocalHashing",
    "Mean",
    "OneBitMean",
    "Protocol",
    "Repeated",
    "Reports",
    "Subset",
    "Tally",
    "Unary",
    "choose",
    "persons_needed",
    "protocol_from_json",
    "shuffled",
    "tally_parquet",
]

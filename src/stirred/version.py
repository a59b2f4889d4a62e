"""The version: rooms read it here, so that none of them has to enter by the front door."""

__version__ = "0.1.0"

"""Composition, conversion and change of unit: guarantees made of guarantees."""

"""A synthetic county to try a release on: households, group quarters and persons, made by our own rules.

Nobody's answers: every record is drawn from tables of shares, which are round numbers of our own. The map is
public and the same for every seed; the people depend on the seed. All draws are exact draws of integers, so a
seed gives the same county on every machine.
"""

from stirred.casebook.county.codebook import RACES
from stirred.casebook.county.county import SEED, County, synthetic_county
from stirred.casebook.county.map import COUNTY, LEVELS, STATE

__all__ = ["COUNTY", "LEVELS", "RACES", "SEED", "STATE", "County", "synthetic_county"]

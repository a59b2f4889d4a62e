"""The TopDown Algorithm: noisy measurements of a tree of geographies, then consistent integer tables.

zero-concentrated differential privacy subject to the declared invariants. ``TopDown`` is the mechanism;
``Allocation`` shares out the budget; ``preset`` has the settings of the 2020 Census.
"""

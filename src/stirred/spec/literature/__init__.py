"""The flavors of the literature, and the 2020 Census, as data."""

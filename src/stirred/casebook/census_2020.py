"""The 2020 Census, from its inputs: the specifications of its systems, and of swapping in their place.

Reference
    Bailie, Gong and Meng, "A Refreshment Stirred, Not Shaken: Invariant-Preserving Deployments of
    Differential Privacy for the U.S. Decennial Census".
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from stirred.spec import (
    Attribute,
    Budget,
    Count,
    Domain,
    Entry,
    Exact,
    HammingUnordered,
    Invariants,
    Multiplicative,
    NormalisedRenyi,
    Schema,
    Specification,
    Stage,
    Threshold,
    change_unit,
    compose,
    swapping_budget,
    swapping_invariants,
    swapping_loss,
    undo_imputation,
)

DELTA = Fraction(1, 10**10)
STRATUM_1940 = 264_331
STRATUM_2010 = 3_650_000
PL_PERSON = Fraction(293764, 114921)
PL_HOUSEHOLD = Fraction(11417641, 152349649)
DHC_PERSON = Fraction(24811, 5000)
DHC_HOUSEHOLD = Fraction(15401, 2000)
TOPDOWN = PL_PERSON + PL_HOUSEHOLD + DHC_PERSON + DHC_HOUSEHOLD

NOMINAL = "Budgets are nominal: those of different flavors are not comparable."
PAPER = "Bailie, Gong, Meng, A Refreshment Stirred, Not Shaken (2026)"
_GEOGRAPHY = ("block", "block_group", "tract", "county", "state")
_HOUSEHOLD = ("household_size", "household_characteristics")

CEF = Domain(
    name="X_CEF",
    stage=Stage.EDITED_FILE,
    structure="multiset",
    meaning="all possible Census Edited Files: the census after collection, coding, editing and imputation",
    symbol="X_CEF",
    latex=r"\mathcal{X}_{\mathrm{CEF}}",
    record_schema=Schema(
        attributes=tuple(Attribute(name=name) for name in (*_GEOGRAPHY, *_HOUSEHOLD, "group_quarters_type")),
        nesting=tuple(itertools.pairwise(_GEOGRAPHY)),
    ),
)

_PERSON = HammingUnordered(unit="person")
_HOUSEHOLD_UNIT = HammingUnordered(unit="household")

_HOUSING_UNITS = Count(unit="housing_unit", by=("block",))
_TOPDOWN = Invariants(
    invariants=(
        Count(unit="person", by=("state",)),
        _HOUSING_UNITS,
        Count(unit="occupied_group_quarters", by=("block", "group_quarters_type")),
    ),
    label="c_TDA",
)

_IMPUTED = "the protection unit is a record after imputation, not the respondent behind it"
_FIXED = "one person record belongs to one household record, whose membership is fixed"


@dataclass(frozen=True)
class SwappingScheme:
    """One row of Table 5: what is matched, what is moved, and the largest stratum that results."""

    id: str
    match: tuple[str, ...]
    swap: tuple[str, ...]
    largest_stratum: int
    where: str
    published: tuple[float, float]

    def specification(self, rate: object = "0.05") -> Specification:
        """The specification of the Permutation Swapping Algorithm under this scheme."""
        hold = tuple(name for name in _HOUSEHOLD if name not in self.match)
        return Specification(
            domain=CEF,
            multiverse=swapping_invariants("household", self.match, self.swap, hold),
            input_premetric=_HOUSEHOLD_UNIT,
            output_premetric=Multiplicative(),
            budget=swapping_budget(self.largest_stratum, rate, "household", self.match),
            assumptions=(_IMPUTED,),
            standing="proved",
        )

    def loss(self, percent: int) -> Exact:
        """The protection loss at a swap rate in per cent (Theorem 1)."""
        return swapping_loss(self.largest_stratum, Fraction(percent, 100))

    @property
    def key(self) -> str:
        """The swap key in words."""
        return " × ".join(name.replace("_", " ") for name in self.match)


_SIZE, _PAIRS = "household_size", "two-person households"
SCHEMES = tuple(
    SwappingScheme(f"psa-2020-{name}", match, (name.removesuffix("-size"),), size, where, published)
    for name, match, size, where, published in (
        ("county", ("state",), 13_475_623, "California", (19.36, 16.42)),
        ("county-size", ("state", _SIZE), 3_948_028, f"California, {_PAIRS}", (18.13, 15.19)),
        ("tract", ("county",), 3_420_628, "Los Angeles County", (17.99, 15.05)),
        ("tract-size", ("county", _SIZE), 939_185, f"Los Angeles County, {_PAIRS}", (16.70, 13.75)),
        ("block", ("block_group",), 6_204, "a California block group", (11.68, 8.73)),
        ("block-size", ("block_group", _SIZE), 4_549, f"a Florida block group, {_PAIRS}", (11.37, 8.42)),
    )
)
LIKE_2010 = SwappingScheme(
    "psa-2010-like", ("state", _SIZE), ("block",), STRATUM_2010, f"California, {_PAIRS}", (18.29, 19.0)
)


@cache
def systems() -> Mapping[str, Specification]:
    """The systems of 2020 by their names in the catalogue, and last all of them under TopDown's flavor.

    The published table leaves the invariants of SafeTab-H open; conditioning on housing units is the safe
    reading, since a guarantee with fewer invariants implies it (Proposition 3).
    """
    units = Invariants(invariants=(_HOUSING_UNITS,), label="c_units")
    some = Invariants(invariants=(Threshold(statistic=_HOUSING_UNITS, at_least=1),), label="c_≥1")
    topdown = _zcdp(_TOPDOWN, _PERSON, "15.29")
    safetab_p, safetab_h = _zcdp(units, _PERSON, "19.776"), _zcdp(units, _HOUSEHOLD_UNIT, "17.79")
    phsafe = _zcdp(some, _HOUSEHOLD_UNIT, "2.515")
    households = [change_unit(part, _PERSON, 1, _FIXED) for part in (safetab_h, phsafe)]
    return {
        "tda-pl": _zcdp(_TOPDOWN, _PERSON, "2.63"),
        "tda-dhc": topdown,
        "safetab-p": safetab_p,
        "safetab-h": safetab_h,
        "phsafe": phsafe,
        "das-2020": compose(topdown, safetab_p, *households, under=topdown.flavor),
    }


def _zcdp(multiverse: Invariants, unit: HammingUnordered, rho_squared: str) -> Specification:
    return Specification(
        domain=CEF,
        multiverse=multiverse,
        input_premetric=unit,
        output_premetric=NormalisedRenyi(),
        budget=Budget.zcdp(rho_squared=rho_squared),
        assumptions=(_IMPUTED,),
        standing="published",
    )


def moves_allowed() -> Fraction:
    """rho squared of the overall system if a person's move may change two household records.

    Then d_household <= 2 d_person, and every household-level contribution quadruples (errata 8.9).
    """
    person = Fraction("2.56") + Fraction("4.96") + Fraction("19.776")
    household = Fraction("0.07") + Fraction("7.70") + Fraction("17.79") + Fraction("2.515")
    return person + 4 * household


def duplicated_record() -> Specification:
    """The overall guarantee for a respondent whose record was used for one other."""
    return undo_imputation(systems()["das-2020"], HammingUnordered(unit="respondent"), 1)


def entries() -> tuple[Entry, ...]:
    """The 2020 systems and the swapping rows as entries of the catalogue, which ships them as data."""
    names = (
        "TopDown, redistricting file (2020)",
        "TopDown, redistricting file and DHC (2020)",
        "SafeTab-P, Detailed DHC-A (2020)",
        "SafeTab-H, Detailed DHC-B (2020)",
        "PHSafe, Supplemental DHC (2020)",
        "Overall 2020 Disclosure Avoidance System",
    )
    noisy = tuple(
        Entry.of_specification(
            spec,
            id=identifier,
            name=name,
            citation=PAPER,
            changed="Statistics fixed by law are invariant, and Gaussian-like noise is measured by D_NoR.",
            blocks_changed=("domain", "multiverse", "input_premetric", "output_premetric"),
            provenance="stated",
        )
        for (identifier, spec), name in zip(systems().items(), names, strict=True)
    )
    swapped = tuple(
        Entry.of_specification(
            scheme.specification(rate),
            id=identifier,
            name=f"Permutation swapping of {scheme.swap[0].replace('_', ' ')} within {scheme.key}, {text}",
            citation=PAPER,
            changed="Two families of marginal tables are invariant; what is left is pure DP.",
            blocks_changed=("domain", "multiverse", "input_premetric"),
            provenance="stated",
        )
        for scheme, rate, identifier, text in [
            *((s, "0.05", s.id, "2020 counterfactual at 5%") for s in SCHEMES),
            (LIKE_2010, "0.04", "psa-2010-like", "like 2010 at 4%"),
            (LIKE_2010, "0.02", "psa-2010-like-2", "like 2010 at 2%"),
        ]
    )
    return noisy + swapped

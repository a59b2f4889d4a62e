"""The 2020 Census, recomputed: its specifications and Tables 2 to 5, each from its inputs.

Reference
    Bailie, Gong and Meng, "A Refreshment Stirred, Not Shaken: Invariant-Preserving Deployments of
    Differential Privacy for the U.S. Decennial Census". Where a published figure does not follow from its
    own formula, the figure that follows is given and the difference is a footnote.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

from stirred.interchange import Tabular
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
    census_epsilon,
    change_unit,
    compose,
    declared_invariants,
    swapping_budget,
    swapping_invariants,
    swapping_loss,
    undo_imputation,
)

if TYPE_CHECKING:
    import polars as pl

DELTA = Fraction(1, 10**10)
STRATUM_1940 = 264_331
STRATUM_2010 = 3_650_000
PL_PERSON = Fraction(293764, 114921)
PL_HOUSEHOLD = Fraction(11417641, 152349649)
DHC_PERSON = Fraction(24811, 5000)
DHC_HOUSEHOLD = Fraction(15401, 2000)
TOPDOWN = PL_PERSON + PL_HOUSEHOLD + DHC_PERSON + DHC_HOUSEHOLD

_CITATION = "Bailie, Gong, Meng, A Refreshment Stirred, Not Shaken (2026)"
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
    published: tuple[str, str]

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

    @property
    def key(self) -> str:
        """The swap key in words."""
        return " × ".join(name.replace("_", " ") for name in self.match)


SCHEMES = (
    SwappingScheme("psa-2020-county", ("state",), ("county",), 13_475_623, "California", ("19.36", "16.42")),
    SwappingScheme(
        "psa-2020-county-size",
        ("state", "household_size"),
        ("county",),
        3_948_028,
        "California, two-person households",
        ("18.13", "15.19"),
    ),
    SwappingScheme(
        "psa-2020-tract",
        ("county",),
        ("tract",),
        3_420_628,
        "Los Angeles County",
        ("17.99", "15.05"),
    ),
    SwappingScheme(
        "psa-2020-tract-size",
        ("county", "household_size"),
        ("tract",),
        939_185,
        "Los Angeles County, two-person households",
        ("16.70", "13.75"),
    ),
    SwappingScheme(
        "psa-2020-block",
        ("block_group",),
        ("block",),
        6_204,
        "a California block group",
        ("11.68", "8.73"),
    ),
    SwappingScheme(
        "psa-2020-block-size",
        ("block_group", "household_size"),
        ("block",),
        4_549,
        "a Florida block group, two-person households",
        ("11.37", "8.42"),
    ),
)

LIKE_2010 = SwappingScheme(
    "psa-2010-like",
    ("state", "household_size"),
    ("block",),
    STRATUM_2010,
    "California, two-person households",
    ("18.29", "19"),
)


def _zcdp(invariants: tuple[Any, ...], label: str, unit: Any, rho_squared: str) -> Specification:
    return Specification(
        domain=CEF,
        multiverse=Invariants(invariants=invariants, label=label),
        input_premetric=unit,
        output_premetric=NormalisedRenyi(),
        budget=Budget.zcdp(rho_squared=rho_squared),
        assumptions=(_IMPUTED,),
        standing="published",
    )


@cache
def topdown(product: str) -> Specification:
    """TopDown: ``pl`` for the redistricting file alone, ``dhc`` for it and the DHC together."""
    amounts = {"pl": "2.63", "dhc": "15.29"}
    return _zcdp(_TOPDOWN.invariants, _TOPDOWN.label, _PERSON, amounts[product])


@cache
def safetab_p() -> Specification:
    """SafeTab-P, which made the Detailed DHC-A."""
    return _zcdp((_HOUSING_UNITS,), "c_units", _PERSON, "19.776")


@cache
def safetab_h() -> Specification:
    """SafeTab-H, which made the Detailed DHC-B.

    The published table leaves its invariants open; conditioning on housing units is the safe reading,
    since a guarantee with fewer invariants implies it (Proposition 3).
    """
    return _zcdp((_HOUSING_UNITS,), "c_units", _HOUSEHOLD_UNIT, "17.79")


@cache
def phsafe() -> Specification:
    """PHSafe, which made the Supplemental DHC: its invariants are inequalities."""
    return _zcdp((Threshold(statistic=_HOUSING_UNITS, at_least=1),), "c_≥1", _HOUSEHOLD_UNIT, "2.515")


@cache
def overall() -> Specification:
    """All 2020 releases together, composed under TopDown's flavor."""
    households = [change_unit(part, _PERSON, 1, _FIXED) for part in (safetab_h(), phsafe())]
    parts = (topdown("dhc"), safetab_p(), *households)
    return compose(*parts, under=topdown("dhc").flavor)


def moves_allowed() -> Fraction:
    """rho squared of the overall system if a person's move may change two household records.

    Then d_household <= 2 d_person, and every household-level contribution quadruples (errata 8.9).
    """
    person = Fraction("2.56") + Fraction("4.96") + Fraction("19.776")
    household = Fraction("0.07") + Fraction("7.70") + Fraction("17.79") + Fraction("2.515")
    return person + 4 * household


def duplicated_record() -> Specification:
    """The overall guarantee for a respondent whose record was used for one other."""
    return undo_imputation(overall(), HammingUnordered(unit="respondent"), 1)


@dataclass(frozen=True)
class Table:
    """A table of the paper: plain rows, with columns in print order."""

    number: int
    title: str
    columns: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class CensusTables(Tabular):
    """Tables 2 to 5 recomputed, with footnotes where the published figure differs."""

    tables: tuple[Table, ...]
    duplicated_record: dict[str, Any]
    like_2010: dict[str, Any]
    footnotes: tuple[str, ...] = field(default=())

    def table(self, number: int) -> Table:
        """One table by its number in the paper."""
        return next(t for t in self.tables if t.number == number)

    def to_polars(self) -> pl.DataFrame:
        """All figures in one long frame: table, row, column, value."""
        import polars as pl

        cells = [
            {"table": t.number, "row": i, "column": name, "value": str(row[name])}
            for t in self.tables
            for i, row in enumerate(t.rows)
            for name in t.columns
        ]
        return pl.DataFrame(cells)

    def record(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        body: dict[str, Any] = {
            f"table_{t.number}": {"title": t.title, "rows": list(t.rows)} for t in self.tables
        }
        return body | {
            "duplicated_record": self.duplicated_record,
            "psa_2010_like": self.like_2010,
            "delta": str(DELTA),
            "footnotes": list(self.footnotes),
        }


def census_tables() -> CensusTables:
    """Recompute Tables 2 to 5 of the paper from their inputs."""
    notes: list[str] = []
    doubled = duplicated_record()
    tables = (_table_2(), _table_3(notes), _table_4(notes), _table_5(notes))
    square = doubled.budget.amount
    return CensusTables(
        tables=tables,
        duplicated_record={
            "rho_squared": float(square),
            "epsilon": _epsilon(square),
            "factor": 2,
        },
        like_2010={
            "largest_stratum": STRATUM_2010,
            "epsilon": [_two(swapping_loss(STRATUM_2010, rate)) for rate in ("0.04", "0.02")],
            "rates": ["0.04", "0.02"],
        },
        footnotes=tuple(notes),
    )


def _table_2() -> Table:
    rows = []
    for rate in ("0.01", "0.05", "0.10", "0.50"):
        loss = swapping_loss(STRATUM_1940, rate)
        rows.append({"rate": rate, "epsilon": _two(loss), "exact": str(loss)})
    title = f"Swap rate to nominal protection loss, Massachusetts 1940 (b = {STRATUM_1940:,})"
    return Table(2, title, ("rate", "epsilon", "exact"), tuple(rows))


def _table_3(notes: list[str]) -> Table:
    inputs = (
        ("PL", "household", PL_HOUSEHOLD, "0.07", "2.70"),
        ("PL", "person", PL_PERSON, "2.56", "17.90"),
        ("DHC", "household", Fraction("7.70"), "7.70", "34.33"),
        ("DHC", "person", Fraction("4.96"), "4.96", "26.34"),
        ("Total", "", Fraction("15.29"), "15.29", "52.83"),
    )
    rows = []
    for product, level, square, printed, published in inputs:
        epsilon = _epsilon(Exact(square))
        name = f"Table 3, {product} {level}".strip()
        exact = {"person": DHC_PERSON, "": TOPDOWN}.get(level)
        _footnote(notes, name, epsilon, published, f"ρ² = {printed}", exact)
        rows.append(
            {
                "product": product,
                "level": level,
                "rho_squared": float(printed),
                "rho_squared_exact": str(square),
                "epsilon": epsilon,
                "published_epsilon": float(published),
            }
        )
    notes.append(
        "Table 3: the PL rows use the exact settings of production (293764/114921 for persons, "
        "11417641/152349649 for housing units), from which 17.90 follows; 2.56 as printed would give 17.92. "
        "Their sum is 2.6312, which the published 2.63 rounds down."
    )
    columns = ("product", "level", "rho_squared", "epsilon", "published_epsilon")
    return Table(3, "Budgets of TopDown's noisy measurements (delta = 1e-10)", columns, tuple(rows))


def _table_4(notes: list[str]) -> Table:
    systems = (
        ("TopDown (PL and DHC)", "tda-dhc", topdown("dhc"), "52.83"),
        ("SafeTab-P (DDHC-A)", "safetab-p", safetab_p(), None),
        ("SafeTab-H (DDHC-B)", "safetab-h", safetab_h(), None),
        ("PHSafe (S-DHC)", "phsafe", phsafe(), None),
        ("Overall 2020 DAS (to date)", "das-2020", overall(), "126.78"),
    )
    rows = []
    for name, identifier, spec, published in systems:
        square = spec.budget.amount
        epsilon = _epsilon(square)
        if published is not None:
            exact = TOPDOWN if identifier == "tda-dhc" else None
            _footnote(notes, f"Table 4, {name}", epsilon, published, f"ρ² = {float(square):g}", exact)
        rows.append(
            _row_4(name, identifier, spec)
            | {
                "rho_squared": float(square),
                "epsilon": epsilon,
                "budget": f"ρ² = {float(square):g}",
            }
        )
    low, high = swapping_loss(4_549, "0.5"), swapping_loss(13_475_623, "0.05")
    swap = _row_4("Swapping (PSA), counterfactual", "psa-2020-*", SCHEMES[0].specification())
    swap["invariants"] = ["vary with the swap key, and are far more than TopDown's: see Table 5"]
    rows.append(
        swap
        | {
            "rho_squared": None,
            "epsilon": [_two(low), _two(high)],
            "budget": f"ε from {_two(low):g} to {_two(high):g}",
        }
    )
    notes.append(
        "Table 4: ε at delta = 1e-10 is ρ² + 2ρ√(-ln δ), between neighbours only. At distance two a Gaussian "
        "with ρ² = 55.371 has 354.50, not 2 × 126.78 = 253.57, so these ε do not belong to d_HamS."
    )
    notes.append(
        "Table 4, Overall: household guarantees are restated for persons, which needs one person to change "
        "at most one household record. If moving house may change two, every household-level ρ² counts four "
        f"times and the overall ρ² is {float(moves_allowed()):g}."
    )
    columns = (
        "mechanism",
        "output_premetric",
        "input_premetric",
        "invariants",
        "budget",
        "epsilon",
    )
    return Table(4, "DP specifications of the 2020 DAS and of swapping", columns, tuple(rows))


def _row_4(name: str, identifier: str, spec: Specification) -> dict[str, Any]:
    return {
        "mechanism": name,
        "id": identifier,
        "output_premetric": spec.output_premetric.symbol,
        "input_premetric": spec.input_premetric.symbol,
        "resolution": spec.input_premetric.unit,
        "invariants": [i.sentence() for i in declared_invariants(spec.multiverse) or ()],
    }


def _table_5(notes: list[str]) -> Table:
    rows = []
    for scheme in SCHEMES:
        losses = [swapping_loss(scheme.largest_stratum, rate) for rate in ("0.05", "0.50")]
        for loss, published in zip(losses, scheme.published, strict=True):
            _footnote(
                notes,
                f"Table 5, {scheme.id}",
                _two(loss),
                published,
                f"b = {scheme.largest_stratum:,}",
            )
        rows.append(
            {
                "id": scheme.id,
                "match": scheme.key,
                "swap": scheme.swap[0].replace("_", " "),
                "largest_stratum": scheme.largest_stratum,
                "epsilon_5": _two(losses[0]),
                "epsilon_50": _two(losses[1]),
                "exact_5": str(losses[0]),
                "exact_50": str(losses[1]),
                "where": scheme.where,
            }
        )
    columns = ("match", "swap", "largest_stratum", "epsilon_5", "epsilon_50", "where")
    title = "Nominal protection loss of swapping applied to the 2020 Census, at 5% and 50%"
    return Table(5, title, columns, tuple(rows))


def _footnote(
    notes: list[str],
    where: str,
    computed: float,
    published: str,
    source: str,
    exact: Fraction | None = None,
) -> None:
    """Say where a printed figure does not follow from its printed input, and what it does follow from."""
    if f"{computed:.2f}" == f"{float(published):.2f}":
        return
    note = f"{where}: {source} as printed gives ε = {computed:.2f}; the paper prints {published}"
    if exact is not None:
        note += f", which follows from the exact {float(exact):.5f} ({_epsilon(Exact(exact)):.2f})"
    notes.append(f"{note}.")


def _epsilon(rho_squared: Exact) -> float:
    whole = rho_squared.rational
    assert whole is not None
    return _two(Exact(census_epsilon(whole, DELTA)))


def _two(value: Exact) -> float:
    """To the nearest hundredth, as the paper prints; guarantees themselves stay exact."""
    return float(value.rounded(2))


def entries() -> tuple[Entry, ...]:
    """The 2020 systems and the swapping rows as entries of the catalogue, which ships them as data."""
    systems = (
        ("tda-pl", "TopDown, redistricting file (2020)", topdown("pl")),
        ("tda-dhc", "TopDown, redistricting file and DHC (2020)", topdown("dhc")),
        ("safetab-p", "SafeTab-P, Detailed DHC-A (2020)", safetab_p()),
        ("safetab-h", "SafeTab-H, Detailed DHC-B (2020)", safetab_h()),
        ("phsafe", "PHSafe, Supplemental DHC (2020)", phsafe()),
        ("das-2020", "Overall 2020 Disclosure Avoidance System", overall()),
    )
    noisy = tuple(
        Entry.of_specification(
            spec,
            id=identifier,
            name=name,
            citation=_CITATION,
            changed="Statistics fixed by law are invariant, and Gaussian-like noise is measured by D_NoR.",
            blocks_changed=("domain", "multiverse", "input_premetric", "output_premetric"),
            provenance="stated",
        )
        for identifier, name, spec in systems
    )
    swapped = tuple(
        Entry.of_specification(
            scheme.specification(rate),
            id=identifier,
            name=f"Permutation swapping of {scheme.swap[0].replace('_', ' ')} within {scheme.key}, {text}",
            citation=_CITATION,
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

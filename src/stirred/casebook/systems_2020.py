"""The systems of the 2020 Census by the numbers: Tables 3 and 4, and a record that was used twice.

The epsilon of a zCDP budget is that of the paper, rho^2 + 2 rho sqrt(-ln delta), at delta = 1e-10.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from stirred.casebook.case import Recomputed
from stirred.casebook.census_2020 import (
    DELTA,
    DHC_PERSON,
    NOMINAL,
    PL_HOUSEHOLD,
    PL_PERSON,
    SCHEMES,
    TOPDOWN,
    duplicated_record,
    moves_allowed,
    systems,
)
from stirred.spec import Specification, catalogue, census_epsilon, declared_invariants, epsilon_at_distance


def table_3() -> Recomputed:
    """The budget of each of TopDown's two products, for households and for persons."""
    inputs = (
        ("PL", "household", PL_HOUSEHOLD, "0.07", 2.70, None),
        ("PL", "person", PL_PERSON, "2.56", 17.90, None),
        ("DHC", "household", Fraction("7.70"), "7.70", 34.33, None),
        ("DHC", "person", Fraction("4.96"), "4.96", 26.34, DHC_PERSON),
        ("Total", "", Fraction("15.29"), "15.29", 52.83, TOPDOWN),
    )
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for product, level, square, printed, published, exact in inputs:
        rows.append(
            {
                "product": product,
                "level": level,
                "rho_squared": float(printed),
                "rho_squared_exact": str(square),
                "epsilon": _epsilon(square),
                "delta": float(DELTA),
                "published_epsilon": published,
            }
        )
        notes += _differing(f"{product} {level}".strip(), square, published, exact)
    notes.append(
        f"The PL rows use the exact settings of production ({PL_PERSON} for persons, {PL_HOUSEHOLD} for "
        f"housing units), from which {_epsilon(PL_PERSON):.2f} follows; 2.56 as printed would give "
        f"{_epsilon(Fraction('2.56')):.2f}. Their sum is {float(PL_PERSON + PL_HOUSEHOLD):.4f}, which the "
        "published 2.63 rounds down."
    )
    return Recomputed(tuple(rows), tuple(notes))


def table_4() -> Recomputed:
    """The specifications of the four systems, of all together, and of swapping."""
    published, exact = {"tda-dhc": 52.83, "das-2020": 126.78}, {"tda-dhc": TOPDOWN}
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for name in ("tda-dhc", "safetab-p", "safetab-h", "phsafe", "das-2020"):
        spec, printed = systems()[name], published.get(name)
        rows.append(
            _blocks(catalogue[name].name, name, spec) | _budget(spec) | {"published_epsilon": printed}
        )
        if printed is not None:
            notes += _differing(catalogue[name].name, _square(spec), printed, exact.get(name))
    overall = systems()["das-2020"]
    losses = [float(scheme.loss(percent)) for scheme in SCHEMES for percent in (5, 50)]
    rows.append(
        _blocks("Permutation swapping, counterfactual", "psa-2020-*", SCHEMES[0].specification())
        | {
            "invariants": ("vary with the swap key, and are far more than TopDown's: see Table 5",),
            "rho_squared": None,
            "epsilon": (min(losses), max(losses)),
            "delta": None,
            "published_epsilon": (8.42, 19.36),
        }
    )
    at_two = float(epsilon_at_distance(overall, 2, DELTA, "gaussian"))
    neighbours = float(epsilon_at_distance(overall, 1, DELTA))
    notes += (
        "ε at δ = 1e-10 is ρ² + 2ρ√(-ln δ), between neighbours only. At distance two a Gaussian with "
        f"ρ² = {float(_square(overall)):g} has {at_two:.2f}, not 2 × {neighbours:.2f} = "
        f"{2 * neighbours:.2f}, so these ε do not belong to d_HamS.",
        "Overall: household guarantees are restated for persons, which needs one person to change at most "
        "one household record. If moving house may change two, every household-level ρ² counts four times "
        f"and the overall ρ² is {float(moves_allowed()):g}.",
        NOMINAL,
    )
    return Recomputed(tuple(rows), tuple(notes))


def used_twice() -> Recomputed:
    """The overall budget for a respondent whose record was used for one other."""
    published = {"published_rho_squared": 221.48, "published_epsilon": 364.31}
    return Recomputed((_budget(duplicated_record()) | published,))


def _blocks(name: str, identifier: str, spec: Specification) -> dict[str, Any]:
    return {
        "mechanism": name,
        "id": identifier,
        "output_premetric": spec.output_premetric.symbol,
        "input_premetric": spec.input_premetric.symbol,
        "resolution": spec.input_premetric.unit,
        "invariants": tuple(i.sentence() for i in declared_invariants(spec.multiverse) or ()),
    }


def _budget(spec: Specification) -> dict[str, float]:
    square = _square(spec)
    return {"rho_squared": float(square), "epsilon": _epsilon(square), "delta": float(DELTA)}


def _square(spec: Specification) -> Fraction:
    square = spec.budget.amount.rational
    assert square is not None
    return square


def _epsilon(rho_squared: Fraction) -> float:
    return float(census_epsilon(rho_squared, DELTA))


def _differing(where: str, printed: Fraction, published: float, exact: Fraction | None) -> list[str]:
    """Say where a published epsilon does not follow from its printed input, and what it does follow from."""
    computed = _epsilon(printed)
    if round(computed, 2) == published:
        return []
    note = (
        f"{where}: ρ² = {float(printed):g} as printed gives ε = {computed:.2f}; the paper prints {published}"
    )
    if exact is not None:
        note += f", which follows from the exact {float(exact):.5f} ({_epsilon(exact):.2f})"
    return [f"{note}."]

"""Audits hand a mechanism what it prepared, once for each data set."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from stirred.audit import Verdict, conformity_audit, divergence_audit, exact_audit, statistical_audit
from stirred.errors import InputError
from stirred.noise import Source, TestSource, integers
from stirred.spec import (
    ZERO,
    Budget,
    Domain,
    Exact,
    Multiplicative,
    Specification,
    SymmetricDifference,
    Trivial,
)


class Preparing:
    """A fair coin for data of any size, and an error for others; counts what it prepares."""

    def __init__(self) -> None:
        self.prepared: list[Any] = []

    def prepare(self, data: Any) -> tuple[str, Any]:
        self.prepared.append(data)
        if not data:
            raise InputError("no records", field="data", expected="records", hint="Give some.")
        return "prepared", data

    def outcomes(self, prepared: tuple[str, Any]) -> dict[int, Fraction]:
        assert prepared[0] == "prepared"
        return {0: Fraction(1, 2), 1: Fraction(1, 2)}

    def divergence(self, x: tuple[str, Any], y: tuple[str, Any]) -> Exact:
        assert x[0] == y[0] == "prepared"
        return ZERO

    def sample(self, prepared: tuple[str, Any], count: int, source: Source) -> list[int]:
        assert prepared[0] == "prepared"
        return integers(source, 2, count).astype(int).tolist()


def test_a_data_set_is_prepared_once_and_what_that_raises_is_an_output() -> None:
    one, two, none = (("a",),), (("a",), ("b",)), ()
    claim = Specification(
        domain=Domain.finite((none, one, two)),
        multiverse=Trivial(),
        input_premetric=SymmetricDifference(unit="record"),
        output_premetric=Multiplicative(),
        budget=Budget.epsilon(1),
    )
    coin = Preparing()
    assert exact_audit(coin, [one, two], claim).verdict is Verdict.NOT_REFUTED
    assert coin.prepared == [one, two]
    assert divergence_audit(coin, [(one, two), (two, one)], claim).verdict is Verdict.NOT_REFUTED
    assert coin.prepared == [one, two] * 2
    found = statistical_audit(coin, [(one, two)], claim, draws=3_000, source=TestSource(1))
    assert found.verdict is Verdict.NOT_REFUTED and coin.prepared == [one, two] * 3
    law = {0: Fraction(1, 2), 1: Fraction(1, 2)}
    assert not conformity_audit(coin, one, law, draws=3_000, source=TestSource(1)).violated
    assert coin.prepared == [one, two] * 3 + [one]
    assert exact_audit(coin, [one, none], claim).violated
    assert conformity_audit(coin, none, law, draws=30, source=TestSource(1)).violated
    assert statistical_audit(coin, [(one, none)], claim, draws=3_000, source=TestSource(1)).violated

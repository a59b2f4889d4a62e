"""The replay audit: what follows the primitives must be the same, and so must what is asked of them."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from stirred.audit import Verdict, artefacts_of, first_difference, replay_audit
from stirred.errors import InputError, Refusal
from stirred.noise import TestSource, discrete_gaussian, discrete_laplace
from stirred.spec import (
    INFINITY,
    Approximate,
    Budget,
    Count,
    Domain,
    Exact,
    Multiplicative,
    NormalisedRenyi,
    Schema,
    Specification,
    SymmetricDifference,
    Trivial,
    from_invariants,
)

SCHEMA = Schema.of(sex=("f", "m"))
X = (("f",), ("m",), ("m",))
Y = (("f",), ("m",))


def _claim(budget=None, premetric=None, multiverse=None) -> Specification:
    return Specification(
        domain=Domain.datasets(SCHEMA, (0, 1, 2, 3)),
        multiverse=multiverse or Trivial(),
        input_premetric=SymmetricDifference(unit="person"),
        output_premetric=premetric or Multiplicative(),
        budget=budget or Budget.epsilon(1),
        standing="proved",
    )


def _count(data, tape, *, sensitivity=1, cost=1, name="count"):
    return tape.draw(
        name,
        len(data),
        lambda source: len(data) + int(discrete_laplace(source, Fraction(1), 1)[0]),
        sensitivity=sensitivity,
        cost=cost,
    )


def _audit(run, claim=None, x=X, y=Y):
    return replay_audit(run, x, y, claim or _claim(), TestSource(1))


def test_post_processing_of_the_primitive_is_byte_identical():
    found = _audit(lambda data, tape: {"count": max(0, _count(data, tape))})
    assert found.verdict is Verdict.NOT_REFUTED
    assert found.details["primitives"] == 1


def test_an_artefact_that_peeks_is_named():
    found = _audit(lambda data, tape: {"a": _count(data, tape), "b": len(data) > 2})
    assert found.violated and found.details["first difference"] == "b"


def test_parameters_that_depend_on_the_data_are_found():
    found = _audit(lambda data, tape: {"a": _count(data, tape, name=f"count {len(data)}")})
    assert found.violated and "primitive 1" in found.details["first difference"]


def test_the_number_of_primitives_may_not_depend_on_the_data():
    def run(data, tape):
        return {"a": [_count(data, tape, cost="1/10") for _ in data][:1]}

    found = _audit(run)
    assert found.violated and "how many" in found.sentence
    assert _audit(run, x=Y, y=X).violated


def test_an_argument_that_moves_more_than_declared_is_found():
    def run(data, tape):
        value = 5 * len(data)
        return {"sum": tape.draw("sum", value, lambda s: 0, sensitivity=2, cost=1)}

    found = _audit(run)
    assert found.violated and found.measured is None
    assert found.certificate.measured == Exact.of("5/2")
    assert "5" not in found.sentence


def test_a_value_that_is_not_a_number_moves_infinitely_far():
    def run(data, tape):
        value = math.nan if len(data) == 3 else 0.0
        return {"sum": tape.draw("sum", value, lambda s: 0, sensitivity=2, cost=1)}

    assert _audit(run).certificate.measured.is_infinite


def test_primitives_that_spend_more_than_the_claim_are_found():
    def twice(data, tape):
        return {"a": _count(data, tape), "b": _count(data, tape)}

    found = _audit(twice)
    assert found.violated and found.measured == Exact.of(2)
    assert _audit(twice, _claim(Budget.epsilon(2))).verdict is Verdict.NOT_REFUTED


def test_costs_under_d_nor_add_as_squares():
    def run(data, tape):
        for name in "ab":
            tape.draw(
                name,
                [len(data)],
                lambda s: discrete_gaussian(s, Fraction(1), 1).tolist(),
                sensitivity=1,
                cost="1/2",
                norm="l2",
            )
        return {}

    claim = _claim(Budget.zcdp(rho_squared="1/2"), NormalisedRenyi())
    assert _audit(run, claim).verdict is Verdict.NOT_REFUTED
    assert _audit(run, _claim(Budget.zcdp(rho_squared="0.49"), NormalisedRenyi())).violated


def test_an_error_on_one_side_is_a_finding_and_carries_no_value():
    def run(data, tape):
        if len(data) == 3:
            raise KeyError("Ms Smith")
        return {}

    found = _audit(run)
    assert found.violated and "Smith" not in found.sentence and "Smith" not in str(found.record())


def test_bad_input_is_refused():
    fixed = from_invariants(Count(unit="person"))
    with pytest.raises(Refusal, match="different universes"):
        _audit(lambda data, tape: {}, _claim(multiverse=fixed))
    with pytest.raises(InputError, match="infinite"):
        _audit(lambda data, tape: {}, _claim(Budget.epsilon(INFINITY)))
    with pytest.raises(InputError, match="do not add up"):
        _audit(
            lambda data, tape: {"a": _count(data, tape)},
            _claim(premetric=Approximate(delta=Exact.of("1/10"))),
        )


def test_folders_are_compared_file_by_file(tmp_path):
    for name, text in (("one", "a"), ("two", "b")):
        (tmp_path / name / "tables").mkdir(parents=True)
        (tmp_path / name / "tables" / "t.csv").write_text(text)
        (tmp_path / name / "same.json").write_text("{}")
    one, two = (artefacts_of(tmp_path / name) for name in ("one", "two"))
    assert first_difference(one, two) == "tables/t.csv"
    assert first_difference(one, one) is None

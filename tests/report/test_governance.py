"""Governance: the worksheet, the laws by name, and precedents that nobody here reviewed."""

from __future__ import annotations

import pytest

from stirred.errors import InputError
from stirred.report import Governance
from stirred.report.governance import (
    LEGAL_REGIMES,
    NORMS,
    PRECEDENTS,
    SAFES,
    Assessment,
    ContextualIntegrity,
    FiveSafes,
    Precedent,
)
from stirred.spec import catalogue

LAWS = {regime.code: regime for regime in LEGAL_REGIMES}
PUBLIC = Assessment(level="none", evidence="open to anyone")


def answered() -> Governance:
    return Governance(
        regime="AU",
        legal_basis="section 12(2)",
        five_safes=FiveSafes(
            projects=PUBLIC,
            people=PUBLIC,
            settings=PUBLIC,
            data=Assessment(level="high", evidence="swapped"),
            outputs=Assessment(level="high", evidence="specification", assessed_by="differential privacy"),
        ),
        contextual_integrity=ContextualIntegrity(
            sender="the agency",
            recipient="the public",
            subject="residents",
            information_type="counts by area",
            transmission_principles=("statistical use only",),
        ),
    )


def test_a_blank_worksheet_has_every_question_open_and_an_answered_one_none() -> None:
    open_fields = Governance().unanswered()
    assert len(open_fields) == len(SAFES) + len(NORMS) + 1
    assert "regime" in open_fields and "regime" not in Governance(regime="US").unanswered()
    assert answered().unanswered() == ()
    assert Governance.read(answered().record()) == answered()


@pytest.mark.parametrize("safe", ["projects", "people", "settings"])
def test_a_guarantee_does_not_judge_people_projects_or_settings(safe: str) -> None:
    judged = {"level": "none", "evidence": "epsilon is small", "assessed_by": "differential privacy"}
    with pytest.raises(InputError) as caught:
        FiveSafes.read({safe: judged})
    assert safe in caught.value.expected
    for other in ("data", "outputs"):
        assert FiveSafes.read({other: judged}).of(other).assessed_by == "differential privacy"  # type: ignore[arg-type]


@pytest.mark.parametrize("safe", ["projects", "people", "settings"])
def test_whoever_reads_a_public_output_is_not_vetted(safe: str) -> None:
    vetted = {"level": "high", "evidence": "researchers sign an oath"}
    with pytest.raises(InputError):
        FiveSafes.read({"flow": "outputs to public", safe: vetted})
    assert FiveSafes.read({"flow": "data to researcher", safe: vetted}).unanswered() == tuple(
        name for name in SAFES if name != safe
    )


def test_a_level_needs_evidence() -> None:
    with pytest.raises(InputError):
        Assessment(level="high", evidence=" ")


def test_blank_answers_are_not_answers() -> None:
    assert "sender" in ContextualIntegrity(sender="  ").unanswered()
    assert "transmission_principles" in ContextualIntegrity(transmission_principles=("",)).unanswered()


def test_contextual_integrity_maps_to_the_five_safes_as_in_table_8_1() -> None:
    assert {name: safes for name, (_, safes) in NORMS.items()} == {
        "sender": (),
        "recipient": ("people",),
        "subject": ("data",),
        "information_type": ("data", "outputs"),
        "transmission_principles": ("projects", "settings"),
    }
    assert set(NORMS) == set(ContextualIntegrity.model_fields) - {"disruptions"}


def test_five_regimes_with_their_instruments_by_name() -> None:
    assert [regime.code for regime in LEGAL_REGIMES] == ["US", "EU", "UK", "AU", "CA"]
    named = {
        "US": "13 U.S.C. § 9",
        "EU": "223/2009",
        "UK": "section 39",
        "AU": "1905",
        "CA": "Statistics Act",
    }
    for code, instrument in named.items():
        assert any(instrument in text for text in LAWS[code].instruments)


def test_the_comparison_of_the_thesis_is_kept() -> None:
    assert {r.code: r.must_infer for r in LEGAL_REGIMES} == {
        "US": False,
        "EU": True,
        "UK": True,
        "AU": False,
        "CA": None,
    }
    assert "reasonably believed" in LAWS["UK"].exceptions
    assert "unqualified" in LAWS["US"].means


def test_an_unknown_regime_is_named_with_the_known_ones() -> None:
    with pytest.raises(InputError) as caught:
        Governance.read({"regime": "NZ"})
    assert "AU" in caught.value.expected


def test_every_precedent_is_labelled_unreviewed_with_its_source() -> None:
    for precedent in PRECEDENTS:
        assert precedent.reviewed is False
        assert precedent.label.startswith("unreviewed") and precedent.source in precedent.label
        assert precedent.numbers()
    with pytest.raises(InputError):
        Precedent.read({"name": "x", "source": "y", "reviewed": True})


def test_census_precedents_agree_with_the_catalogue() -> None:
    amounts = {p.name: p.rho_squared for p in PRECEDENTS}
    pairs = (
        ("US Census Bureau, 2020 redistricting data (P.L. 94-171)", "tda-pl"),
        ("US Census Bureau, 2020 Demographic and Housing Characteristics", "tda-dhc"),
        ("US Census Bureau, 2020 Detailed DHC-A", "safetab-p"),
        ("US Census Bureau, 2020 Detailed DHC-B", "safetab-h"),
        ("US Census Bureau, 2020 Supplemental DHC", "phsafe"),
    )
    for name, entry in pairs:
        assert amounts[name] == catalogue.specification(entry).budget.amount

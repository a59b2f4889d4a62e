"""Constraints as declared: read from plain data, said in words, refused where they carry values."""

from __future__ import annotations

import json

import pytest

from stirred.errors import StirredError
from stirred.spec import Condition, Count
from stirred.topdown import Edit, EqualTo, Facilities, Invariant, StructuralZero, preset
from stirred.topdown.constraint import as_constraints
from stirred.topdown.presets import names

DECLARED = (
    Invariant(count=Count(unit="person", by=("state",))),
    Invariant(
        count=Count(unit="person", by=("block",), where=(Condition(attribute="age", levels=("adult",)),))
    ),
    Facilities(attribute="quarters", level="block", cap=7, sources={"barn": (1, 2)}, at_least_one=(2,)),
    StructuralZero(where={"quarters": (4,), "age": ("minor",)}),
    Edit(level="county", query="age", where={"age": ("adult",)}, at_least=1, at_most=1000),
    EqualTo(release="pl", level="block", query="total"),
)
SENTENCES = (
    "the number of persons in each state is exact",
    "the number of persons with age in {adult} in each block is exact",
    "every block has from 1 (or 0 where units may be vacant) to 7 people "
    "for each facility of a type of quarters",
    "no record has quarters in {4} and age in {minor}",
    "every count of age by county is at least 1 and at most 1,000",
    "total by block equals the release pl",
)


@pytest.mark.parametrize("declared", DECLARED, ids=lambda d: d.kind)
def test_a_declaration_survives_plain_data(declared):
    plain = json.loads(json.dumps(declared.record() | {"kind": declared.kind}))
    assert as_constraints([plain]) == (declared,)
    assert as_constraints([declared]) == (declared,)


@pytest.mark.parametrize("number", range(len(DECLARED)))
def test_a_declaration_says_itself_in_words(number):
    assert DECLARED[number].sentence() == SENTENCES[number]


@pytest.mark.parametrize(
    "plain",
    [
        {"kind": "invariant", "count": {"unit": "person", "by": ["state"], "values": [3, 4]}},
        {"kind": "invariant", "count": {"unit": "person", "total": 7}},
        {"kind": "invariant"},
        {"kind": "wish", "level": "block"},
        {"level": "block"},
        {"kind": "edit", "level": "block", "at_least": "many"},
        {"kind": "edit", "level": "block", "colour": "red"},
        {"kind": "structural_zero", "where": [["age", 3]]},
        {"kind": "equal_to", "release": "pl", "level": "block"},
        "state totals",
        17,
    ],
    ids=str,
)
def test_what_is_not_a_declaration_is_refused(plain):
    with pytest.raises(StirredError):
        as_constraints([plain])


@pytest.mark.parametrize("name", names())
def test_the_constraints_of_presets_are_declarations(name):
    declared = as_constraints(preset(name).constraints)
    assert len(declared) == len(preset(name).constraints)
    assert all(d.sentence() for d in declared)

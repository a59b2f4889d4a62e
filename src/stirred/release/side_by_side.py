"""Two releases, or two plans, of the same data side by side: the paper's section 5 for anyone's data."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stirred.documents import parse_json, read_text
from stirred.errors import InputError, StirredError
from stirred.release.documents import ERRORS
from stirred.release.folder import INTERNAL
from stirred.release.manifest import NAME, Manifest
from stirred.release.plan import GroupPlan
from stirred.release.rehearsal import dry_run
from stirred.release.together import unit_of
from stirred.report import Expected
from stirred.show import specification_page
from stirred.spec import (
    Comparison,
    InUnit,
    Specification,
    Uncertainty,
    catalogue,
    declared_invariants,
    jointly,
)
from stirred.spec import compare as compare_specifications

NOT_COMPARABLE = (
    "The two budgets are amounts of different flavors: their numbers must not be compared. What can be "
    "compared is above, block by block, and below, error by error."
)


@dataclass(frozen=True)
class Side:
    """One of the two: its name, its guarantee, what theory expects and (internal) what was measured.

    ``dataset`` and ``unit`` say on which account it is made, and in which unit the account counts it.
    """

    name: str
    specification: Specification
    expected: tuple[Expected, ...] = ()
    measured: tuple[dict[str, Any], ...] = ()
    dataset: str = ""
    unit: InUnit | None = None

    @classmethod
    def of(cls, path: Path) -> Side:
        """From a plan, or from the folder of a release."""
        if os.path.isdir(path):
            return _released(path)
        found = dry_run(path)
        dataset = found.plan.dataset
        return cls(
            found.plan.name,
            found.specification,
            found.facts.expected,
            dataset=dataset.name,
            unit=unit_of(dataset.group),
        )


@dataclass(frozen=True)
class SideBySide:
    """The comparison: verdict of the specifications, invariants of each and of both, errors."""

    first: Side
    second: Side
    verdict: Comparison

    @property
    def same_flavor(self) -> bool:
        """Whether the budgets are amounts of one flavor."""
        return self.first.specification.flavor == self.second.specification.flavor

    def together(self) -> Specification | str:
        """What both promise together, if they are of one data set; or why that cannot be said."""
        sides = (self.first, self.second)
        if self.first.dataset != self.second.dataset:
            return (
                "They stand in different accounts. Where these hold the same people, their losses add up; "
                "whether they do cannot be seen here."
            )
        if self.first.name == self.second.name:
            return "They are the same release."
        try:
            return jointly(*(s.specification for s in sides), units=[s.unit for s in sides])
        except StirredError as error:
            return f"What both promise together cannot be said: {error.problem}."

    def together_in_words(self) -> str:
        """The same as a sentence."""
        found = self.together()
        if isinstance(found, str):
            return found
        return f"Both releases together: {found}."

    def invariants(self) -> dict[str, list[str]]:
        """What is exact in the first, in the second, and in both."""
        one, two = (_invariants(side.specification) for side in (self.first, self.second))
        return {
            "first": [text for text in one if text not in two],
            "second": [text for text in two if text not in one],
            "both": [text for text in one if text in two],
        }

    def page(self) -> str:
        """The two guarantees on one self-contained page; no measured error is on it."""
        return specification_page(
            self.first.specification,
            self.second.specification,
            (self.first.name, self.second.name),
            entries=len(catalogue),
            together=self.together_in_words(),
        )

    def record(self) -> dict[str, Any]:
        """Plain data with stable keys; measured errors are left out: they are internal."""
        joint = self.together()
        return {
            "first": _side(self.first),
            "second": _side(self.second),
            "overall": str(self.verdict.overall),
            "sentence": self.verdict.sentence(),
            "blocks": self.verdict.to_polars().to_dicts(),
            "invariants": self.invariants(),
            "together": self.together_in_words(),
            "joint_guarantee": None if isinstance(joint, str) else joint.record(),
            "budgets_comparable": self.same_flavor,
            "warning": "" if self.same_flavor else NOT_COMPARABLE,
        }


def compare(first: Path, second: Path) -> SideBySide:
    """Compare two plans or two release folders."""
    one, two = Side.of(first), Side.of(second)
    return SideBySide(one, two, compare_specifications(one.specification, two.specification))


def _released(folder: Path) -> Side:
    manifest = Manifest.read(folder)
    place = folder / "public" if (folder / "public").is_dir() else folder / "internal"
    path = place / "specification.json"
    if not path.is_file():
        raise InputError(
            f"the folder {folder.name} has no specification",
            field="folder",
            expected=f"a release folder with {NAME} and specification.json",
            hint="Name the folder that a release was written to.",
        )
    specification = Specification.from_json(read_text(path, "specification file"))
    name = str(manifest.facts.get("name", folder.name))
    group = manifest.facts.get("group")
    unit = None if group is None else unit_of(GroupPlan.read(group))
    dataset = str(manifest.facts.get("dataset", ""))
    return Side(name, specification, _published(place), _measured(folder), dataset, unit)


def _published(place: Path) -> tuple[Expected, ...]:
    """What the data dictionary of a release says of the error of its tables."""
    path = place / "data-dictionary.json"
    if not path.is_file():
        return ()
    files = parse_json(read_text(path, "data dictionary"), "data dictionary")
    said = {file["title"]: file["uncertainty"] for file in files if file["kind"] == "table"}
    return tuple(Expected(title, Uncertainty.read(found)) for title, found in said.items())


def _measured(folder: Path) -> tuple[dict[str, Any], ...]:
    path = folder / INTERNAL / ERRORS
    errors = parse_json(read_text(path, "errors"), "errors") if path.is_file() else {}
    return tuple({"table": table, "mean_absolute": float(error)} for table, error in errors.items())


def _invariants(specification: Specification) -> list[str]:
    return [i.sentence() for i in declared_invariants(specification.multiverse) or ()]


def _side(side: Side) -> dict[str, Any]:
    return {
        "name": side.name,
        "guarantee": str(side.specification),
        "invariants": _invariants(side.specification),
        "expected": [e.record() for e in side.expected],
    }

"""Two small plans of a release, one for each mechanism, with data that fit them and sentinels in the data.

``write_case`` makes a folder with both plans; ``twin=True`` gives another data set of the same universe:
other records, the same invariants. Columns that no plan names hold sentinels.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from stirred.ledger import KeyFile, Ledger, SqliteStorage
from stirred.noise import TestSource
from stirred.release import open_account

OWNER, CURATOR = "Owner", "Curator"
MECHANISMS = ("swap", "topdown")
DAY = datetime(2026, 3, 1, 12, tzinfo=UTC)
SENTINEL = "sentinelzq"
BLOCKS = ("111", "112", "121", "122")

CHECKLIST = {
    "steps": [
        {"step": n, "status": "done", "owner": "Owner", "evidence": ["minutes"]}
        for n in (1, 2, 3, 5, 6, 7, 8, 9, 10)
    ]
}
COMMON: dict[str, Any] = {
    "title": "A small release",
    "description": "A few dozen invented records",
    "agency": "Example Statistics Office",
    "curator": CURATOR,
    "governance": {"regime": "US"},
    "checklist": CHECKLIST,
}
CODEBOOK = [
    {"name": "county", "levels": ["1"]},
    {"name": "block", "levels": list(BLOCKS)},
    {"name": "size", "levels": [1, 2]},
    {"name": "tenure", "levels": ["owned", "rented"]},
    {"name": "sex", "levels": ["f", "m"]},
]


def swap_plan(**changes: Any) -> dict[str, Any]:
    """A plan for swapping, with keys of its mechanism changed."""
    return COMMON | {
        "name": "small-swapped",
        "dataset": {"name": "small-households", "ceiling": 100},
        "mechanism": {
            "kind": "swap",
            "households": "households.parquet",
            "persons": "members.parquet",
            "id": "household_id",
            "match": ["county", "size"],
            "swap": ["block"],
            "hold": ["tenure"],
            "nesting": [],
            "rate": "1/2",
            "codebook": {"attributes": CODEBOOK},
            "tables": ["block * tenure", "block * size"],
        }
        | changes,
    }


def topdown_plan(**changes: Any) -> dict[str, Any]:
    """A plan for TopDown, with keys of its mechanism changed."""
    return COMMON | {
        "name": "small-topdown",
        "dataset": {"name": "small-persons", "ceiling": 100},
        "mechanism": {
            "kind": "topdown",
            "geography": {"file": "blocks.parquet", "levels": ["county", "block"]},
            "units": {
                "person": {
                    "file": "persons.parquet",
                    "schema": {
                        "attributes": [
                            {"name": "sex", "levels": ["f", "m"]},
                            {"name": "age", "levels": ["child", "adult"]},
                        ]
                    },
                    "budget": {
                        "rho_squared": 1,
                        "levels": {"county": "1/2", "block": "1/2"},
                        "queries": {"total": "1/2", "detailed": "1/2"},
                    },
                }
            },
            "constraints": [{"kind": "invariant", "count": {"unit": "person", "by": ["county"]}}],
            "tables": [{"level": "block", "query": "sex"}],
        }
        | changes,
    }


def plan_of(mechanism: str, **changes: Any) -> dict[str, Any]:
    """A plan by the name of its mechanism."""
    return {"swap": swap_plan, "topdown": topdown_plan}[mechanism](**changes)


def write_plan(path: Path, plan: dict[str, Any]) -> Path:
    """Write a plan as YAML."""
    path.write_text(yaml.safe_dump(plan, sort_keys=False), encoding="utf-8")
    return path


def households(twin: bool = False) -> pl.DataFrame:
    """Thirty-two households; in the twin the blocks are exchanged within strata."""
    rows = [
        {
            "household_id": f"{SENTINEL}-h{i}",
            "county": "1",
            "block": BLOCKS[(i + (i // 8 if twin else 0)) % 4],
            "size": 1 + (i // 4) % 2,
            "tenure": ("owned", "rented")[(i // 3) % 2],
            "remark": f"{SENTINEL} remark {i}",
        }
        for i in range(32)
    ]
    return pl.DataFrame(rows)


def members(homes: pl.DataFrame) -> pl.DataFrame:
    """The persons of some households."""
    rows = [
        {
            "household_id": home["household_id"],
            "person_id": f"{SENTINEL}-p{i}-{n}",
            "sex": "fm"[(i + n) % 2],
            "income": 987_654_321,
        }
        for i, home in enumerate(homes.to_dicts())
        for n in range(home["size"])
    ]
    return pl.DataFrame(rows)


def persons(twin: bool = False) -> pl.DataFrame:
    """Forty persons in three blocks; in the twin they live and are otherwise, and are as many."""
    rows = [
        {
            "person_id": f"{SENTINEL}-t{i}",
            "block": BLOCKS[i % (4 if twin else 3)],
            "sex": "fm"[i % (5 if twin else 2) > 0],
            "age": ("child", "adult")[i % 3 > 0],
            "diary": f"{SENTINEL} diary {i}",
        }
        for i in range(40)
    ]
    return pl.DataFrame(rows)


def write_case(folder: Path, twin: bool = False) -> Path:
    """A folder with the data and ``swap.yaml`` and ``topdown.yaml``."""
    folder.mkdir(parents=True, exist_ok=True)
    blocks = pl.DataFrame({"county": ["1"] * 4, "block": BLOCKS})
    blocks.write_parquet(folder / "blocks.parquet")
    homes = households(twin)
    homes.write_parquet(folder / "households.parquet")
    members(homes).write_parquet(folder / "members.parquet")
    persons(twin).write_parquet(folder / "persons.parquet")
    for mechanism in MECHANISMS:
        write_plan(folder / f"{mechanism}.yaml", plan_of(mechanism))
    return folder


def new_ledger(place: Path, case: Path, mechanisms: Sequence[str] = MECHANISMS) -> Ledger:
    """A ledger in which the data sets of the plans are open."""
    return _opened(Ledger.create(place, owner=OWNER), case, mechanisms)


def frozen_ledger(place: Path, case: Path, mechanisms: Sequence[str] = MECHANISMS) -> Ledger:
    """A ledger whose clock and key stand still: the same acts give the same entries."""
    key = KeyFile(place.with_name(f"{place.name}.key"))
    key.path.write_text("ab" * 32, encoding="ascii")
    ledger = Ledger(SqliteStorage.create(place), key=key, clock=lambda: DAY)
    ledger.found(OWNER, key.read())
    return _opened(ledger, case, mechanisms)


def _opened(ledger: Ledger, case: Path, mechanisms: Sequence[str]) -> Ledger:
    ledger.appoint(CURATOR, "curator", by=OWNER)
    for mechanism in mechanisms:
        open_account([case / f"{mechanism}.yaml"], ledger, by=OWNER)
    return ledger


def leftovers(output: Path) -> list[str]:
    """Whatever a run left beside its output; the empty lock of one that was killed apart."""
    return sorted(
        p.name
        for p in output.parent.iterdir()
        if p.name.startswith((f".{output.name}", ".stirred")) and p.name != f".{output.name}.lock.part"
    )


class FrozenSource(TestSource):
    """Reproducible words that pass for publishable ones, so that tests can see the public folder."""

    @property
    def publishable(self) -> bool:
        return True


class WatchedSource(FrozenSource):
    """Calls a function whenever words are asked of it or of a child."""

    def __init__(self, seed: int, watch: Any) -> None:
        super().__init__(seed)
        self._watch = watch

    def words(self, count: int) -> Any:
        self._watch()
        return super().words(count)

    def child(self, *path: int) -> WatchedSource:
        made = super().child(*path)
        made._watch = self._watch
        return made

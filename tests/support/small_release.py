"""Two small plans that run in a blink: a swapped village and a tiny county by TopDown, with a ledger."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
from support.tiny_plan import PLAN as TINY
from support.tiny_plan import write_plan

from stirred.ledger import Ledger
from stirred.release import open_account

OWNER, CURATOR = "Ada", "Ben"
SENTINEL = "q7-sentinel"

DONE = "checklist:\n  steps:\n" + "".join(
    f"    - {{step: {n}, status: done, owner: Ada, evidence: [minutes]}}\n" for n in range(1, 11)
)

HEAD = """\
name: {name}
title: A {name}
agency: Office
curator: Ben
dataset: {{name: {name}, population: 1000, ceiling: {ceiling}}}
"""

SWAP = """\
mechanism:
  kind: swap
  households: households.parquet
  id: id
  match: [size]
  swap: [place]
  hold: [tenure]
  nesting: []
  rate: 1/2
  tables: [place * tenure, place * size]
"""


def village(folder: Path, checklist: str = DONE) -> Path:
    """A swap plan with its households; returns the path of the plan."""
    folder.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(
        {
            "id": [f"{SENTINEL}-{n}" for n in range(40)],
            "size": [1, 2] * 20,
            "tenure": ["owned", "owned", "rented", "rented"] * 10,
            "place": ["north", "east", "south", "west", "middle"] * 8,
        }
    ).write_parquet(folder / "households.parquet")
    path = folder / "village.yaml"
    path.write_text(HEAD.format(name="village", ceiling=5) + SWAP + checklist, encoding="utf-8")
    return path


def tiny_county(folder: Path, checklist: str = DONE) -> Path:
    """A TopDown plan with its files; returns the path of the plan."""
    folder.mkdir(parents=True, exist_ok=True)
    write_plan(folder)
    body = "mechanism:\n  kind: topdown\n" + re.sub("(?m)^", "  ", TINY).rstrip() + "\n"
    path = folder / "tiny.yaml"
    path.write_text(HEAD.format(name="tiny", ceiling=3) + body + checklist, encoding="utf-8")
    return path


def opened_ledger(path: Path, *plans: Path) -> Path:
    """A ledger in which the data sets of the plans are open; returns its path."""
    book = Ledger.create(path, owner=OWNER)
    book.appoint(CURATOR, "curator", by=OWNER)
    for plan in plans:
        open_account([plan], book, by=OWNER)
    return path

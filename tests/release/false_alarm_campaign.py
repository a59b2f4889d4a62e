"""Audit the draws of honest plans, each another one, and count the alarms: there must be none.

Plans for swapping have random sizes of strata, rates and values; plans for TopDown random maps, budgets and
shares. Audited are the plan's own draw, the noise of every query, what it costs, and the claim. A campaign of
1,000 plans is run by hand:

    python tests/release/false_alarm_campaign.py --plans 1000 --seed 1

Its log stands in the documentation; the slow tests run a tenth of it with the same seed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import polars as pl
from support.release_case import swap_plan, topdown_plan, write_plan

import stirred.release.kinds.swap.audits as swap_audit
import stirred.release.kinds.topdown.audits as topdown_audit
from stirred.audit import Finding, claim_audit
from stirred.noise import TestSource
from stirred.release import Plan
from stirred.release.kinds.swap.job import SwapJob
from stirred.release.kinds.topdown.job import TopDownJob

DRAWS = 2_000
AGES = ("child", "adult")
GEOGRAPHY = {"file": "blocks.parquet", "levels": ["county", "tract", "block"]}


def some_swap(chance: random.Random, folder: Path) -> Path:
    """A plan with one to six strata of one to ninety households."""
    sizes = [chance.choice((1, 2, 3, 5, 8, 20, 41, 90)) for _ in range(chance.randint(1, 6))]
    sizes[0] = max(sizes[0], 2)
    rows = [
        {"stratum": stratum, "tenure": chance.choice("abc"), "block": chance.choice("wxyz")}
        for stratum, size in enumerate(sizes)
        for _ in range(size)
    ]
    chance.shuffle(rows)
    pl.DataFrame(rows).write_parquet(folder / "households.parquet")
    rate = chance.choice(("1/2", "1/10", "1/50", "9/10", "1/3"))
    plan = swap_plan(match=["stratum"], rate=rate, tables=[], codebook=None, persons=None, id=None)
    return write_plan(folder / "swap.yaml", plan)


def some_topdown(chance: random.Random, folder: Path) -> Path:
    """A plan with up to three tracts of one to four blocks, and budgets from 1/20 to 5."""
    blocks = [(f"{tract}", f"{tract}{b}") for tract in range(3) for b in range(chance.randint(1, 4))]
    pl.DataFrame(
        {"county": ["1"] * len(blocks), "tract": [t for t, _ in blocks], "block": [b for _, b in blocks]}
    ).write_parquet(folder / "blocks.parquet")
    rows = [
        {
            "block": chance.choice(blocks)[1],
            "sex": chance.choice("fm"),
            "age": chance.choice(("child", "adult")),
        }
        for _ in range(chance.randint(1, 60))
    ]
    pl.DataFrame(rows).write_parquet(folder / "persons.parquet")
    plan = topdown_plan(
        geography={"file": "blocks.parquet", "levels": ["county", "tract", "block"]}, tables=[]
    )
    plan["mechanism"]["units"]["person"]["budget"] = {
        "rho_squared": chance.choice(("1/20", "1/2", "1", "5")),
        "levels": _shares(chance, ("county", "tract", "block")),
        "queries": _shares(chance, ("total", "sex", "detailed")),
    }
    return write_plan(folder / "topdown.yaml", plan)


def _shares(chance: random.Random, names: tuple[str, ...]) -> dict[str, str]:
    weights = [chance.randint(1, 5) for _ in names]
    return {name: str(Fraction(w, sum(weights))) for name, w in zip(names, weights, strict=True)}


def audits(path: Path, seed: int) -> list[Finding]:
    """What sees the draw itself, and the claim."""
    plan, source = Plan.load(path), TestSource(seed)
    if path.stem == "swap":
        swap = SwapJob(plan, path.parent)
        found = [swap_audit._drawn_by_the_plan(swap, source)]
        guarantee = swap.specification()
    else:
        topdown = TopDownJob(plan, path.parent)
        found = [*topdown_audit._noise(topdown, source, DRAWS), topdown_audit._paid(topdown)]
        guarantee = topdown.specification()
    return [*found, claim_audit(guarantee, guarantee)]


def campaign(plans: int, seed: int, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """So many plans, half of each mechanism; returns verdicts and every alarm."""
    chance = random.Random(seed)
    verdicts: Counter[str] = Counter()
    alarms: list[str] = []
    for number in range(plans):
        with tempfile.TemporaryDirectory() as folder:
            path = (some_swap, some_topdown)[number % 2](chance, Path(folder))
            for finding in audits(path, seed * 10**6 + number):
                verdicts[f"{path.stem}, {finding.audit}: {finding.verdict.value}"] += 1
                if finding.violated:
                    alarms.append(f"{number} {path.stem} {finding.subject}: {finding.sentence}")
        if number % 50 == 49:
            say(f"{number + 1} plans, {len(alarms)} alarms")
    return {"seed": seed, "plans": plans, "verdicts": dict(sorted(verdicts.items())), "alarms": alarms}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plans", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    answer = campaign(chosen.plans, chosen.seed, lambda text: print(text, file=sys.stderr))  # noqa: T201
    sys.stdout.write(json.dumps(answer, indent=2) + "\n")
    sys.exit(1 if answer["alarms"] else 0)

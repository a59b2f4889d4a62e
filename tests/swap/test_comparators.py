"""What is for comparison and experiments: pairwise swaps, nearby-first, no vacuous swaps."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest
from scipy import stats
from support.protocol import guaranteed

from stirred.errors import InputError, Refusal
from stirred.noise import TestSource
from stirred.swap import ExperimentalSwap, PairwiseSwap, Records
from stirred.swap.enumeration import stratum_outcomes

ALPHA = 1e-6


def town(count: int = 600) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    block = rng.integers(0, 30, count)
    return pl.DataFrame(
        {
            "adults": rng.integers(1, 3, count),
            "tenure": rng.integers(0, 2, count),
            "county": block // 10,
            "block": block,
            "race": rng.integers(0, 6, count),
        }
    )


def pairwise(**fields: object) -> PairwiseSwap:
    given = {
        "match": ("adults", "tenure"),
        "swap": ("county", "block"),
        "risk": ("race",),
        "risk_place": "block",
        "rate": "0.1",
    }
    return PairwiseSwap(**given | fields)  # type: ignore[arg-type]


def test_pairwise_swaps_have_no_finite_budget_and_are_never_published() -> None:
    made = pairwise().release(town(), TestSource(1))
    assert made.specification.budget.amount.is_infinite
    assert any("supports" in text for text in made.specification.assumptions)
    with pytest.raises(Refusal):
        made.require_publishable()


def test_pairwise_swaps_exchange_places_between_different_blocks_of_one_key() -> None:
    frame = town()
    donors = pairwise()._pairs(frame, TestSource(2))
    moved = np.flatnonzero(donors != np.arange(frame.height))
    assert moved.size > 0
    assert np.array_equal(donors[donors], np.arange(frame.height))
    for name in ("adults", "tenure"):
        values = frame[name].to_numpy()
        assert (values[donors[moved]] == values[moved]).all()
    blocks = frame["block"].to_numpy()
    assert (blocks[donors[moved]] != blocks[moved]).all()


def test_pairwise_swaps_refuse_a_bad_rate() -> None:
    with pytest.raises(InputError):
        pairwise(rate="1").release(town(), TestSource(1))


def toy() -> pl.DataFrame:
    return pl.DataFrame({"h": [0, 0, 1, 2], "county": [0, 0, 1, 1], "block": [0, 1, 2, 2]})


@pytest.mark.parametrize(
    "fields", [{"law": "no-vacuous"}, {"law": "nearby-first", "near": "county", "anywhere": "1/3"}]
)
def test_experimental_laws_agree_with_their_enumeration(fields: dict[str, str]) -> None:
    frame = toy()
    swap = ExperimentalSwap(match=(), swap=("county", "block"), rate="1/2", **fields)  # type: ignore[arg-type]
    h = [(v,) for v in frame["h"]]
    s = list(zip(frame["county"], frame["block"], strict=True))
    exact = stratum_outcomes(list(zip(h, s, strict=True)), "1/2", derange=swap._twin())
    prepared = swap.prepare(Records.of(frame))
    root, runs, seen = TestSource(7), 3_000, Counter[object]()
    for run in range(runs):
        donors = swap.donors(prepared, root.child(run))
        seen[tuple(sorted((h[i], s[donors[i]]) for i in range(4)))] += 1
    keys = sorted(exact)
    assert set(seen) <= set(keys)
    observed, expected = [seen[k] for k in keys], [float(exact[k]) * runs for k in keys]
    assert stats.chisquare(observed, expected).pvalue > ALPHA


def test_small_experiments_are_enumerated_and_large_ones_uncertified() -> None:
    swap = ExperimentalSwap(match=(), swap=("county", "block"), rate="1/2", law="no-vacuous")
    small = guaranteed(swap, toy())
    assert small.standing == "enumerated"
    assert not small.budget.amount.is_infinite
    large = swap.release(town(200), TestSource(1))
    assert large.specification.standing == "uncertified"
    with pytest.raises(Refusal, match="not certified"):
        large.require_publishable()


def test_experiments_do_not_mix_with_other_extensions() -> None:
    with pytest.raises(InputError, match="nearby"):
        ExperimentalSwap(match=(), swap=("block",), rate="1/2")
    with pytest.raises(Refusal):
        ExperimentalSwap(match=(), swap=("block",), rate="1/2", law="no-vacuous", loss="tighter")


def test_experiments_with_persons_are_uncertified_however_small() -> None:
    """Households that are equal but for their persons are distinct records, which the twin does not see."""
    frame = toy().with_columns(id=pl.Series(range(4)))
    persons = pl.DataFrame({"id": range(4), "age": [1, 2, 3, 4]})
    swap = ExperimentalSwap(match=(), swap=("county", "block"), rate="1/2", law="no-vacuous")
    assert guaranteed(swap, Records.of(frame, persons, "id")).standing == "uncertified"


def test_nearby_first_without_swaps_anywhere_is_refused() -> None:
    with pytest.raises(Refusal, match="infinite"):
        ExperimentalSwap(match=(), swap=("county", "block"), rate="1/2", near="county", anywhere="0")

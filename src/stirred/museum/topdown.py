"""Bugs that TopDown invites: estimation, geography or budget that reads the data, and noise too small.

The real mechanism runs on a small map, with every query of every level recorded as one primitive. The budget
is so large that noise is zero but for a chance below 1e-20: what an estimate reveals is then sure to show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from stirred.audit import Family, Finding, Tape, claim_audit, exact_audit, noise_audit, replay_audit
from stirred.data import Spine
from stirred.museum.claims import Law, pushed
from stirred.museum.exhibit import Exhibit
from stirred.museum.units import clamped_geometric, independent
from stirred.noise import Source
from stirred.spec import (
    Budget,
    Count,
    Domain,
    Exact,
    HammingUnordered,
    Multiplicative,
    Schema,
    Specification,
    SymmetricDifference,
    Trivial,
)
from stirred.topdown import (
    Allocation,
    Cells,
    Change,
    Chunk,
    Invariant,
    Measurements,
    Noisy,
    Prepared,
    TopDown,
    Universe,
    noise_of,
)

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

LEVELS = ("county", "block")
BLOCKS = ("a", "b", "c")
PERSON = Schema.of(sex=("f", "m"))
RHO_SQUARED = Fraction(1000)
MANY = 40

Artefacts = dict[str, Any]


def _persons(*rows: tuple[str, str]) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(list(rows), schema=["block", "sex"], orient="row")


# The last person moves to block b, and block c is empty then; or stays and has another sex.
STAYED = (("a", "f"), ("a", "m"), ("b", "f"), ("b", "f"), ("c", "m"))
MOVED = (*STAYED[:-1], ("b", "m"))
CHANGED = (*STAYED[:-1], ("c", "f"))


def _topdown(
    blocks: Sequence[str] = BLOCKS,
    shares: Mapping[str, object] | None = None,
    constraints: Sequence[object] = (),
    change: Change = "replace-one",
) -> TopDown:
    import polars as pl

    spine = Spine.from_columns(pl.DataFrame({"county": ["1"] * len(blocks), "block": blocks}), LEVELS)
    levels = shares or dict.fromkeys(LEVELS, "1/2")
    queries = {"total": "1/2", "detailed": "1/2"}
    allocation = Allocation.of(Cells(PERSON), RHO_SQUARED, levels, queries, change)
    return TopDown(spine, [Universe("person", PERSON, allocation)], constraints)


def run(topdown: TopDown, data: pl.DataFrame, tape: Tape) -> Artefacts:
    """The mechanism with its measurements on a tape: tables of every level leave the building."""
    prepared = topdown.prepare(data)
    counts = prepared.counts
    design, allocation = topdown.designs["person"], topdown.universes[0].allocation
    made: list[Measurements] = []

    def noisy(level: int, query: str, source: Source) -> NDArray[np.int32]:
        if not made:
            made.append(topdown.draw(prepared, source).measurements["person"])
        return made[0].chunk(level, 0).values[query]

    recorded = {}
    for level, name in enumerate(LEVELS):
        nodes = design.measured[level]
        table = counts["person"][level].dense(0, topdown.spine.size(level))[nodes]
        values = {
            query: tape.draw(
                f"{query} by {name}",
                design.cells.query(query).answer(table).ravel().tolist(),
                partial(noisy, level, query),
                sensitivity=Exact.sqrt(allocation.squared_sensitivity),
                cost=Exact.sqrt(allocation.rho(name, query)),
                norm="l2",
                variance=str(allocation.variance(name, query)),
            )
            for query in design.queries(level)
        }
        recorded[level] = Chunk(level, 0, nodes.size, values)
    measurements = Measurements(design, lambda level, number: recorded[level])
    estimates = topdown.finish(Noisy({"person": measurements}), prepared.public).products["person"]
    return {f"persons by {level}": estimates.table(level, "detailed").rows() for level in LEVELS}


def _replay(
    build: Callable[[pl.DataFrame], TopDown],
    claim: Specification,
    source: Source,
    subject: str,
    *,
    finish: Callable[[Artefacts, pl.DataFrame], Artefacts] = lambda artefacts, data: artefacts,
    other: Sequence[tuple[str, str]] = MOVED,
) -> Finding:
    """Record on one data set and replay on its neighbour."""

    def whole(data: pl.DataFrame, tape: Tape) -> Artefacts:
        return finish(run(build(data), data, tape), data)

    return replay_audit(whole, _persons(*STAYED), _persons(*other), claim, source, subject=subject)


def _peeking(broken: bool, source: Source) -> Finding:
    """An estimate is set to zero wherever the true count is zero."""
    topdown = _topdown()

    def finish(artefacts: Artefacts, data: pl.DataFrame) -> Artefacts:
        occur = set(data.select("block", "sex").iter_rows())
        zeroed = [row if row[:2] in occur else (*row[:2], 0) for row in artefacts["persons by block"]]
        return artefacts | {"persons by block": zeroed} if broken else artefacts

    return _replay(lambda data: topdown, topdown.guarantee(), source, "the estimation", finish=finish)


def _geography(broken: bool, source: Source) -> Finding:
    """The map has the blocks that occur in the data, and empty ones are missing."""

    def build(data: pl.DataFrame) -> TopDown:
        return _topdown(sorted(set(data["block"])) if broken else BLOCKS)

    return _replay(build, _topdown().guarantee(), source, "the geography")


def _budget(broken: bool, source: Source) -> Finding:
    """Blocks get a larger share where none has more than two persons; the total stays as claimed."""

    def build(data: pl.DataFrame) -> TopDown:
        small = not broken or data["block"].value_counts()["count"].max() == 2
        return _topdown(shares=dict(zip(LEVELS, ("1/2", "1/2") if small else ("3/4", "1/4"), strict=True)))

    return _replay(build, _topdown().guarantee(), source, "the budget")


def _invariant(broken: bool, source: Source) -> Finding:
    """Block totals are kept exact. The twin lists them, so it promises nothing to a person who moves."""
    topdown = _topdown(constraints=[Invariant(count=Count(unit="person", by=("block",)))])
    claim = topdown.guarantee()
    if broken:
        claim = claim.model_copy(update={"multiverse": Trivial()})
    other = MOVED if broken else CHANGED
    return _replay(lambda data: topdown, claim, source, "the invariants", other=other)


def _noise_unit(broken: bool, source: Source) -> Finding:
    """Noise for a person more or less, under a claim for a person replaced."""
    topdown = _topdown(change="add-remove" if broken else "replace-one")
    claim = topdown.guarantee().model_copy(update={"input_premetric": HammingUnordered(unit="person")})
    return _replay(lambda data: topdown, claim, source, "the unit of the noise")


def _toy(broken: bool, source: Source) -> Finding:
    """A county of two blocks with geometric noise: total and blocks are measured, each person in two counts.

    The budget of ln 4 allows a ratio of 1/2 for each of two measurements; 1/4 is right for one alone.
    """
    ratio, largest = Fraction(1, 4) if broken else Fraction(1, 2), 2
    claim = Specification(
        domain=Domain.datasets(Schema.of(block=("a", "b")), range(largest + 1)),
        multiverse=Trivial(),
        input_premetric=SymmetricDifference(unit="person"),
        output_premetric=Multiplicative(),
        budget=Budget.epsilon("ln(4)"),
    )

    def law(data: Any) -> Law:
        truth = (len(data), data.count(("a",)), data.count(("b",)))
        measured = independent(*(clamped_geometric(count, ratio, largest) for count in truth))
        return pushed(measured, lambda noisy: estimated(*noisy))

    mechanism = SimpleNamespace(outcomes=law)
    return exact_audit(mechanism, claim.domain.enumerate(), claim, subject="a toy TopDown")


def estimated(total: int, first: int, second: int) -> tuple[int, int]:
    """Non-negative integers that sum to the noisy total and lie nearest to the noisy blocks."""
    splits = [(k, total - k) for k in range(total + 1)]
    return min(splits, key=lambda split: (split[0] - first) ** 2 + (split[1] - second) ** 2)


class Quiet(TopDown):
    """Adds noise to counts of the most common variance parameter only; the others are exact."""

    def draw(self, prepared: Prepared, random: Source | None = None, folder: Path | None = None) -> Noisy:
        """The measurements, with most of their noise taken out again."""
        made = super().draw(prepared, random).measurements["person"]

        def load(level: int, number: int) -> Chunk:
            chunk, values = made.chunk(level, number), {}
            for query, variance, noise, _ in noise_of(made.design, chunk, prepared.counts["person"][level]):
                exact = (chunk.values[query] - noise).astype(np.int32)
                values[query] = chunk.values[query] if variance == _COMMON else exact
            return Chunk(level, chunk.start, chunk.stop, values)

        return Noisy({"person": Measurements(made.design, load)})


_COMMON = Fraction(4, 3)


def _most_variances(broken: bool, source: Source) -> Finding:
    """Four variance parameters, by level and query; the most common one is that of the detailed blocks."""
    allocation = Allocation.of(
        Cells(PERSON), Fraction(3, 2), {"county": "1/3", "block": "2/3"}, {"total": "1/4", "detailed": "3/4"}
    )
    kind = Quiet if broken else TopDown
    topdown = kind(_topdown().spine, [Universe("person", PERSON, allocation)])
    prepared = topdown.prepare(_persons(*STAYED))
    counts = prepared.counts
    design = topdown.designs["person"]
    drawn: dict[tuple[str, str, Fraction], list[NDArray[np.int64]]] = {}
    for number in range(MANY):
        made = topdown.draw(prepared, source.child(number)).measurements["person"]
        for level, name in enumerate(LEVELS):
            for query, variance, noise, _ in noise_of(design, made.chunk(level, 0), counts["person"][level]):
                drawn.setdefault((name, query, variance), []).append(noise)
    families = [Family(key[:2], key[2], tables) for key, tables in drawn.items()]
    return noise_audit(families, subject="the noise of every query")


def _claim(broken: bool, source: Source) -> Finding:
    """59% of the stated budget is announced. Invariants leave no pair of data sets that shows more."""
    guarantee = _topdown().guarantee()
    claimed = guarantee.flavor.with_budget(Budget.zcdp(rho_squared=RHO_SQUARED * Fraction(59, 100)))
    return claim_audit(claimed if broken else guarantee, guarantee, subject="the announced budget")


EXHIBITS: tuple[Exhibit, ...] = (
    Exhibit(
        "peeking-post-processing",
        "Estimates are set to zero where the true count is zero.",
        "our own",
        _peeking,
    ),
    Exhibit(
        "data-dependent-geography",
        "The map is made of the blocks that occur in the data, so that empty ones are missing.",
        "our own",
        _geography,
    ),
    Exhibit(
        "data-dependent-budget",
        "How the budget is shared out among the levels depends on the population of the blocks.",
        "our own",
        _budget,
    ),
    Exhibit(
        "undeclared-invariant",
        "Block totals are kept exact, and the claim does not list them.",
        "our own",
        _invariant,
    ),
    Exhibit(
        "topdown-add-remove-noise",
        "Noise is scaled to one record more or less, and the claim is for one record replaced.",
        "our own",
        _noise_unit,
    ),
    Exhibit(
        "noise-on-one-variance",
        "Counts of the most common variance get their noise, and all others are exact.",
        "our own, found by a reviewer",
        _most_variances,
        random=True,
    ),
    Exhibit(
        "claim-below-the-guarantee",
        "A part of the stated budget is announced, and no pair that shares the invariants shows more.",
        "our own, found by a reviewer",
        _claim,
    ),
    Exhibit(
        "toy-topdown-wrong-scale",
        "Noise is scaled for one measurement, and two are made.",
        "our own",
        _toy,
    ),
)

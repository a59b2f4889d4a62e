"""Audits of a TopDown plan: small public data sets that differ as much as may be, and the noise it draws."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.audit import (
    Family,
    Finding,
    Verdict,
    conformity_audit,
    distance_between,
    divergence_audit,
    noise_audit,
    same_universe,
    statistical_audit,
)
from stirred.errors import StirredError
from stirred.noise import Source, discrete_gaussian, gaussian_mass, integers, permutation
from stirred.release.job import Members
from stirred.release.kinds.topdown.excerpt import empty_branch
from stirred.release.replay import REPLAYS
from stirred.spec import (
    ZERO,
    Budget,
    Domain,
    Exact,
    NormalisedRenyi,
    Schema,
    Specification,
    SymmetricDifference,
    Trivial,
    plural,
    shown,
)
from stirred.topdown import Edit, Facilities, StructuralZero, TopDown

if TYPE_CHECKING:
    from stirred.release.kinds.topdown.job import Noise, TopDownJob

PAIRS, ENOUGH, ATTEMPTS = 3, 8, 180
LAWS = 3
FEWEST, FEWEST_OF_LEVEL = 50, 400
MOST_AGAIN, LARGEST_AGAIN = 80, 500_000
Frames = Mapping[str, pl.DataFrame]


def audits(job: TopDownJob, claim: Specification, source: Source, draws: int) -> list[Finding]:
    """Every audit of the measurements."""
    least = min(counts_by_variance(job.mechanism))
    return [
        _paid(job),
        _divergences(job, claim, source.child(0)),
        *_noise(job, source.child(1), draws),
        _one_count(least, source.child(2), draws),
    ]


def companions_of(mechanism: TopDown) -> tuple[str, ...]:
    """Units of which one record may change with a record of the first: the specification assumes so."""
    return tuple(universe.unit for universe in mechanism.universes[1:])


def located(frames: Frames, mechanism: TopDown) -> dict[str, pl.DataFrame]:
    """Records with every level of the geography, as the invariants name them."""
    spine = mechanism.spine
    table = spine.table()
    out = {}
    for unit, frame in frames.items():
        leaves = spine.locate(frame[spine.levels[-1]])
        own = frame.drop(spine.levels, strict=False)
        out[unit] = own.hstack(table[leaves])
    return out


def _divergences(job: TopDownJob, claim: Specification, source: Source) -> Finding:
    """Pairs of tiny data sets, made of schema and a branch of the map alone: nothing confidential is read."""
    with TemporaryDirectory(prefix="stirred-audit-") as folder:
        part = empty_branch(job, source.child(0), Path(folder))
        return _divergences_on(part, claim, source)


def _divergences_on(job: TopDownJob, claim: Specification, source: Source) -> Finding:
    mechanism = job.mechanism
    subject = "the measurements of neighbouring data sets"
    found = itertools.islice(_toys(job, claim, source), ENOUGH)

    def apart(pair: tuple[Frames, Frames]) -> float:
        return float(mechanism.divergence(*map(mechanism.prepare, pair)))

    pairs = sorted(found, key=apart, reverse=True)[:PAIRS]
    if not pairs:
        sentence = "no pair of small data sets of one universe was found that the plan accepts"
        return Finding("exact", subject, Verdict.NOT_APPLICABLE, sentence)
    return divergence_audit(
        mechanism,
        pairs,
        claim,
        subject=subject,
        view=lambda frames: located(frames, mechanism),
        companions=companions_of(mechanism),
    )


def _toys(job: TopDownJob, claim: Specification, source: Source) -> Iterator[tuple[Frames, Frames]]:
    """Pairs at distance one in which a record of every measured unit changes, as far as the plan allows."""
    mechanism = job.mechanism
    for attempt in range(ATTEMPTS):
        draw = _Draw(mechanism, source.child(1, attempt))
        x = draw.data(attempt)
        if not _allowed(job, x):
            continue
        first = located(x, mechanism)
        for y in draw.changes(x):
            seen = first, located(y, mechanism)
            if not same_universe(claim, *seen):
                continue
            distance = distance_between(claim, *seen, companions_of(mechanism))
            if distance > ZERO and not distance.is_infinite and _allowed(job, y):
                yield x, y
                break


class _Draw:
    """Random records of a plan's units, from their declared levels and the public geography."""

    def __init__(self, mechanism: TopDown, source: Source) -> None:
        self.mechanism = mechanism
        self.words = iter(integers(source, 2**32, 4096).tolist())
        spine = mechanism.spine
        leaves, codes = spine.size(spine.depth - 1), spine.leaf_codes()
        here = next(self.words) % leaves
        self.places: tuple[str, ...] = codes[here], codes[(here + max(1, leaves // 2)) % leaves]

    def data(self, attempt: int) -> dict[str, pl.DataFrame]:
        """A record in one place, in both, or (not of the first unit) in none, in turn."""
        out = {}
        for unit, cells in self.mechanism.units.items():
            choices = [self.places[:1], self.places]
            if unit != self.mechanism.universes[0].unit:
                choices.append(())
            attempt, choice = divmod(attempt, len(choices))
            rows = [self._record(cells.schema, place) for place in choices[choice]]
            out[unit] = self._frame(cells.schema, rows)
        return out

    def changes(self, x: Frames) -> Iterator[dict[str, pl.DataFrame]]:
        """The first record of every measured unit replaced; with its place or not, what is bounded or not."""
        fixed = _bounded(self.mechanism)
        measured = [unit for unit in self.mechanism.designs if x[unit].height]
        kinds = ((True, False), (False, False), (True, True), (False, True))
        for choice in itertools.product(kinds, repeat=len(measured)):
            y = dict(x)
            for unit, (moves, keeps) in zip(measured, choice, strict=True):
                schema, frame = self.mechanism.units[unit].schema, x[unit]
                row = frame.row(0, named=True)
                new = self._other(schema, row, self.places[1] if moves else self.places[0])
                if keeps:
                    new |= {name: row[name] for name in schema.names if name in fixed}
                y[unit] = pl.concat([self._frame(schema, [new]), frame[1:]])
            yield y

    def _record(self, schema: Schema, place: str) -> dict[str, Any]:
        """Any record; where a bound speaks of an attribute, often its first level, which is the usual one."""
        out: dict[str, Any] = {self.mechanism.spine.levels[-1]: place}
        for a in schema.attributes:
            levels = a.levels or ("",)
            usual = a.name in _bounded(self.mechanism) and next(self.words) % 4
            out[a.name] = levels[0 if usual else next(self.words) % len(levels)]
        return out

    def _other(self, schema: Schema, row: Mapping[str, Any], place: str) -> dict[str, Any]:
        """A record that differs in every attribute that has two levels."""
        out: dict[str, Any] = {self.mechanism.spine.levels[-1]: place}
        for a in schema.attributes:
            rest = [level for level in a.levels or () if str(level) != str(row[a.name])]
            out[a.name] = rest[next(self.words) % len(rest)] if rest else row[a.name]
        return out

    def _frame(self, schema: Schema, rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
        names = (self.mechanism.spine.levels[-1], *schema.names)
        columns = {name: [str(row[name]) for row in rows] for name in names}
        return pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String))


def _bounded(mechanism: TopDown) -> set[str]:
    """Attributes that a bound or a structural zero speaks of."""
    out: set[str] = set()
    for declared in mechanism.constraints:
        if isinstance(declared, Facilities):
            out.add(declared.attribute)
        elif isinstance(declared, StructuralZero | Edit):
            out |= set(declared.where)
    return out


def _allowed(job: TopDownJob, frames: Frames) -> bool:
    """Whether a data set is one that the plan accepts: a bound or a structural zero may exclude it."""
    try:
        job.mechanism.prepare(frames)
    except StirredError:
        return False
    return True


def _paid(job: TopDownJob) -> Finding:
    """What the variances that are drawn with cost, path by path, against the budget that is stated."""
    subject = "the noise against the stated budget"
    for universe in job.mechanism.universes:
        spent, stated = job.mechanism.designs[universe.unit].spent, universe.allocation.rho_squared
        if spent > stated:
            sentence = (
                f"the measurements of {plural(universe.unit)} spend more than their budget: from root to "
                f"leaf {shown(Exact.of(spent))} of {shown(Exact.of(stated))} (ρ²)"
            )
            sides = Exact.sqrt(spent), Exact.sqrt(stated)
            return Finding("accounting", subject, Verdict.VIOLATED, sentence, *sides)
    sentence = "no path from root to leaf spends more than is stated, by the variances of its measurements"
    return Finding("accounting", subject, Verdict.NOT_REFUTED, sentence)


def _noise(job: TopDownJob, source: Source, draws: int) -> list[Finding]:
    """What the plan's own draw adds to the counts, against the exact law: noise alone, whatever the data.

    A small plan is drawn as a release is, into files; of a large one an empty branch is (where the plan takes
    no records at all), and chunks of every level are drawn in memory.
    """
    added = []
    with TemporaryDirectory(prefix="stirred-audit-") as folder:
        part = empty_branch(job, source.child(0), Path(folder))
        if part is job or _allowed(part, part.dataset):
            added.append(part.added_noise(source.child(1), Path(folder, "drawn"), draws))
    if part is not job:
        added += [job.added_again(unit, level, source.child(2), draws) for unit, level in _levels(job)]
    counts = counts_by_variance(job.mechanism)
    often = sorted(counts, key=lambda variance: -counts[variance])[:LAWS]
    laws = []
    for i, variance in enumerate(often):
        parts = [noise.reshape(-1) for one in added for key, noise in one.items() if key[-1] == variance]
        noise = np.concatenate(parts)[:draws]
        laws.append(_conforming(variance, noise, source.child(3 + i), 1e-6 / len(often)))
    return [_every_family(job, added, source.child(3 + LAWS), draws), *laws]


def _levels(job: TopDownJob) -> list[tuple[str, int]]:
    return [
        (unit, level)
        for unit, design in job.mechanism.designs.items()
        for level in range(design.spine.depth)
        if design.measured[level].size
    ]


def _every_family(job: TopDownJob, added: Sequence[Noise], source: Source, draws: int) -> Finding:
    """Every query of every level; small levels are drawn again, until there is enough to see."""
    made: dict[Any, list[Any]] = {}
    counted: dict[Any, list[Any]] = {}

    def add(noise: Noise) -> None:
        for key, drawn in noise.items():
            made.setdefault(key, []).append(drawn)
            counted.setdefault(key, []).append(noise.counted[key])

    for one in added:
        add(one)
    for unit, level in _levels(job):
        name = job.mechanism.spine.levels[level]
        sizes = [sum(n.size for n in drawn) for key, drawn in made.items() if key[:2] == (unit, name)]
        for number in range(_again(sizes)):
            add(job.added_again(unit, level, source.child(number), draws))
    families = [Family(key[:-1], key[-1], drawn, counted[key]) for key, drawn in made.items()]
    return noise_audit(families, subject="the noise of every query of the plan's own draw")


def _again(sizes: Sequence[int]) -> int:
    """How often a level is drawn again, by how much every query of it measures."""
    if not sizes:
        return 0
    wanted = max(math.ceil(FEWEST / min(sizes)), math.ceil(FEWEST_OF_LEVEL / sum(sizes))) - 1
    return min(wanted, MOST_AGAIN, LARGEST_AGAIN // sum(sizes))


def _conforming(variance: Fraction, noise: NDArray[np.int64], source: Source, alpha: float) -> Finding:
    reach = 1
    while gaussian_mass(variance, reach).high > Fraction(1, 10**9):
        reach *= 2
    law = {k: tuple(gaussian_mass(variance, k)) for k in range(-reach, reach + 1)}
    return conformity_audit(
        lambda data, count, stream: noise,
        None,
        law,
        draws=noise.size,
        alpha=alpha,
        source=source,
        subject=f"the noise of the plan's own draw, of variance parameter {float(variance):.4g}",
    )


def _one_count(variance: Fraction, source: Source, draws: int) -> Finding:
    """One noisy count with and without a record, drawn by the production sampler."""
    claim = Specification(
        domain=Domain.datasets(Schema.of(record=("present",)), (0, 1)),
        multiverse=Trivial(),
        input_premetric=SymmetricDifference(unit="record"),
        output_premetric=NormalisedRenyi(),
        budget=Budget.zcdp(rho_squared=1 / (2 * variance)),
        standing="proved",
    )

    def sample(data: Any, count: int, stream: Source) -> Any:
        return len(data) + discrete_gaussian(stream, variance, count)

    pair = ((), (("present",),))
    subject = "the sampler on one count, with the least noise"
    return statistical_audit(sample, [pair], claim, draws=draws, source=source, subject=subject)


def members(job: TopDownJob, claim: Specification, source: Source) -> Members:
    """Other data sets of the universe, as many as are found."""
    found = [_rearranged(job, claim, source.child(number)) for number in range(REPLAYS)]
    return Members(
        [other for other in found if other is not None],
        lambda frames: located(frames, job.mechanism),
        companions_of(job.mechanism),
    )


def _rearranged(job: TopDownJob, claim: Specification, source: Source) -> Frames | None:
    """Another data set of the same universe, far away: records exchange what no bound speaks of.

    In the first unit the free attributes are dealt out anew, and the places within groups of records that
    agree in the bounded ones. In the other measured units as many records may change as in the first, and no
    more: theirs are the free attributes only. Columns that the plan does not name are emptied. ``None`` where
    the plan does not accept the result, or the invariants change.
    """
    data, mechanism = dict(job.dataset), job.mechanism
    leaf, bounded = mechanism.spine.levels[-1], _bounded(mechanism)
    out, budget = dict(data), None
    for number, unit in enumerate(mechanism.designs):
        frame, names = data[unit], mechanism.units[unit].schema.names
        fixed = [name for name in names if name in bounded]
        free = [name for name in names if name not in fixed]
        strange = [name for name in frame.columns if name not in (*names, leaf)]
        stream = source.child(number)
        taken = np.arange(frame.height)
        some = permutation(stream.child(0), frame.height)[:budget]
        taken[some] = some[permutation(stream.child(1), some.size)]
        dealt = frame.with_columns(frame[name].gather(taken) for name in free)
        if number == 0:
            dealt = dealt.with_columns(dealt[leaf].gather(_within(dealt, fixed, stream.child(2))))
        emptied = dealt.with_columns(pl.lit(None, frame.schema[n]).alias(n) for n in strange)
        trial = {**out, unit: emptied}
        if same_universe(claim, located(data, mechanism), located(trial, mechanism)) and _allowed(job, trial):
            out = trial
        if number == 0:
            changed = distance_between(claim, *(located({unit: f[unit]}, mechanism) for f in (data, out)))
            budget = math.floor(float(changed))
    return None if all(out[unit] is data[unit] for unit in out) else out


def _within(frame: pl.DataFrame, by: Sequence[str], source: Source) -> NDArray[np.int64]:
    """For every row the row of its group whose place it takes."""
    if not by:
        return permutation(source, frame.height)
    codes = frame.select(pl.struct(by).rank("dense")).to_series().to_numpy()
    first = np.lexsort((source.words(codes.size), codes))
    second = np.argsort(codes, kind="stable")
    out = np.empty(codes.size, dtype=np.int64)
    out[second] = first
    return out


def counts_by_variance(mechanism: TopDown) -> dict[Fraction, int]:
    """How many counts are measured with each variance parameter: public, like the plan and the map."""
    out: dict[Fraction, int] = {}
    for design in mechanism.designs.values():
        for level in range(design.spine.depth):
            reaches = design.reach[level][design.measured[level]]
            for reach in design.reaches(level):
                nodes = int((reaches == reach).sum())
                for name, variance in design.allocation.variances(design.chain(level, reach)).items():
                    out[variance] = out.get(variance, 0) + nodes * design.cells.query(name).size
    return out

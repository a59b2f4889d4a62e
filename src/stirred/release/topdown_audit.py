"""Audits of a TopDown plan: pairs of data sets at full size, and the noise that it draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import polars as pl

from stirred.audit import Finding, Verdict, divergence_audit
from stirred.audit.conformity import conformity_audit
from stirred.audit.neighbours import neighbours
from stirred.audit.statistical import statistical_audit
from stirred.errors import NotComputable, StirredError
from stirred.noise import Source, discrete_gaussian, gaussian_mass
from stirred.release.topdown_job import TopDownJob
from stirred.spec.budget import Budget
from stirred.spec.domain import Domain
from stirred.spec.exact import Exact
from stirred.spec.input_premetric import SymmetricDifference
from stirred.spec.multiverse import Trivial
from stirred.spec.output_premetric import NormalisedRenyi
from stirred.spec.schema import Schema
from stirred.spec.specification import Specification
from stirred.topdown import TopDown
from stirred.topdown.constraint import Edit, Facilities, StructuralZero

PAIRS = 5
Pairs = list[tuple[Any, Exact]]


def audit_topdown(
    job: TopDownJob, claim: Specification, pairs: Pairs, source: Source, draws: int
) -> list[Finding]:
    """Every audit of the measurements."""
    variances = _variances(job.mechanism)
    return [
        _universe(pairs),
        _divergences(job, claim, pairs),
        *(_noise(variance, source.child(i), draws) for i, variance in enumerate(variances)),
        _one_count(variances[0], source.child(len(variances)), draws),
    ]


def _universe(pairs: Pairs) -> Finding:
    subject = "the universe of the data"
    if not pairs:
        sentence = "no other data set with the same invariants was found: the guarantee may protect nothing"
        return Finding("universe", subject, Verdict.VACUOUS, sentence)
    nearest = min(distance for _, distance in pairs)
    sentence = f"other data sets with the same invariants exist, the nearest found at distance {nearest}"
    return Finding("universe", subject, Verdict.NOT_REFUTED, sentence, details={"pairs": len(pairs)})


def _divergences(job: TopDownJob, claim: Specification, pairs: Pairs) -> Finding:
    subject = "the measurements of neighbouring data sets"
    if not pairs:
        sentence = "no pair of data sets of one universe was found"
        return Finding("exact", subject, Verdict.VACUOUS, sentence)
    data = job.data()
    compared = [(data, other, distance) for other, distance in pairs]
    return divergence_audit(job.mechanism, compared, claim, subject=subject)


def _noise(variance: Fraction, source: Source, draws: int) -> Finding:
    """The production sampler against the exact masses, which are enclosed between rationals."""
    reach = 1
    while gaussian_mass(variance, reach).high > Fraction(1, 10**9):
        reach *= 2
    masses: dict[Any, Fraction] = {k: _middle(gaussian_mass(variance, k)) for k in range(-reach, reach + 1)}
    masses["beyond"] = 1 - sum(masses.values(), Fraction(0))

    def sample(_: Any, count: int, stream: Source) -> list[Any]:
        drawn = discrete_gaussian(stream, variance, count).tolist()
        return [k if abs(k) <= reach else "beyond" for k in drawn]

    subject = f"the noise of variance parameter {float(variance):.4g}"
    return conformity_audit(sample, None, masses, draws=draws, source=source, subject=subject)


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
    subject = "one measured count, with the least noise"
    return statistical_audit(sample, [pair], claim, draws=draws, source=source, subject=subject)


def topdown_neighbours(job: TopDownJob, claim: Specification, source: Source) -> Pairs:
    """Data sets of the same universe that keep the declared bounds: what the domain allows.

    Attributes that a bound speaks of stay as they are at first: moves of all others keep the bounds, and
    change the most counts. Those that demand most of the budget come first.
    """
    data, mechanism = job.data(), job.mechanism
    located = {unit: _located(frame, mechanism) for unit, frame in data.items()}
    unit = mechanism.universes[0].unit
    named = (*mechanism.spine.levels, *mechanism.units[unit].schema.names)
    free = [name for name in named if name not in _bounded(mechanism)]
    kept: Pairs = []
    for number, columns in enumerate((free, list(named))):
        try:
            found = neighbours(
                located, claim, source.child(number), 2 * PAIRS, columns=columns,
                places=mechanism.spine.table(),
            )  # fmt: skip
        except NotComputable:
            continue
        for other, distance in found:
            frames = {unit: frame.select(data[unit].columns) for unit, frame in other.items()}
            if _allowed(job, frames):
                kept.append((frames, distance))
    kept.sort(key=lambda pair: float(mechanism.divergence(data, pair[0])) / float(pair[1]), reverse=True)
    return kept[:PAIRS]


def _bounded(mechanism: TopDown) -> set[str]:
    """Attributes that a bound or a structural zero speaks of."""
    out: set[str] = set()
    for declared in mechanism.constraints:
        if isinstance(declared, Facilities):
            out.add(declared.attribute)
        elif isinstance(declared, StructuralZero | Edit):
            out |= set(declared.where)
    return out


def _located(frame: pl.DataFrame, mechanism: TopDown) -> pl.DataFrame:
    """Records with every level of the geography, as the invariants name them."""
    spine = mechanism.spine
    leaf = spine.levels[-1]
    table, leaves = spine.table(), spine.locate(frame[leaf])
    return frame.with_columns(table[name].gather(leaves).alias(name) for name in spine.levels)


def _allowed(job: TopDownJob, frames: Mapping[str, Any]) -> bool:
    """Whether a data set is one that the plan accepts: a bound or a structural zero may exclude it."""
    try:
        job.on(frames).prepare()
    except StirredError:
        return False
    return True


def _variances(mechanism: TopDown) -> Sequence[Fraction]:
    """The least and the largest variance that is drawn."""
    found = {
        variance
        for design in mechanism.designs.values()
        for level in range(design.spine.depth)
        for reach in design.reaches(level)
        for variance in design.allocation.variances(design.chain(level, reach)).values()
    }
    return sorted({min(found), max(found)})


def _middle(enclosure: Any) -> Fraction:
    return Fraction(enclosure.low + enclosure.high) / 2

"""Blackwell's order: one pair of distributions is a randomised post-processing of another.

Guarantee
    The kernel is exact, and where none is found there is none.
Reference
    Theorem A.6.2 of the thesis (Blackwell): Tr(P, Q) is easier than Tr(P', Q') exactly when a Markov
    kernel sends P to P' and Q to Q'. In terms of the mass P + Q and of the share r that P has in it, such a
    kernel gathers mass of mean share r' for every target. Targets are served one after the other, each with
    the neighbouring mass of the right mean: the shadow of Beiglböck and Juillet, On a problem of optimal
    transport under marginal martingale constraints (2016), Theorem 4.8, by which what remains serves the
    other targets whenever the whole could.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from stirred.spec.finite.distribution import Distribution, Outcome


@dataclass(frozen=True)
class Kernel:
    """A Markov kernel between two finite spaces: for every source the probabilities of the targets."""

    sources: tuple[Outcome, ...]
    targets: tuple[Outcome, ...]
    probabilities: tuple[tuple[Fraction, ...], ...]


class _Atom(NamedTuple):
    """Mass of P + Q at an outcome, and the share of P in it."""

    share: Fraction
    mass: Fraction
    outcome: Outcome


def kernel(p: Distribution, q: Distribution, p2: Distribution, q2: Distribution) -> Kernel | None:
    """A kernel that sends P to P' and Q to Q', or ``None`` where there is none.

    Examples
    --------
    >>> fair, biased = Distribution({0: "1/2", 1: "1/2"}), Distribution({0: "1/4", 1: "3/4"})
    >>> kernel(fair, biased, fair, fair).probabilities[0]
    (Fraction(1, 2), Fraction(1, 2))
    >>> kernel(fair, fair, fair, biased) is None
    True
    """
    sources, targets = _atoms(p, q), _atoms(p2, q2)
    left = sources
    served: dict[tuple[Outcome, Outcome], Fraction] = {}
    for target in targets:
        start = _start(left, target)
        if start is None:
            return None
        taken = [_overlap(left, i, start, start + target.mass) for i in range(len(left))]
        for atom, part in zip(left, taken, strict=True):
            served[atom.outcome, target.outcome] = part / (p[atom.outcome] + q[atom.outcome])
        left = [atom._replace(mass=atom.mass - part) for atom, part in zip(left, taken, strict=True)]
    names = tuple(sorted((a.outcome for a in sources), key=repr))
    others = tuple(sorted((a.outcome for a in targets), key=repr))
    return Kernel(names, others, tuple(tuple(served[s, t] for t in others) for s in names))


def _atoms(p: Distribution, q: Distribution) -> list[_Atom]:
    """Both distributions together, in the order of the share of the first."""
    masses = {outcome: p[outcome] + q[outcome] for outcome in p.support | q.support}
    atoms = [_Atom(p[outcome] / mass, mass, outcome) for outcome, mass in masses.items()]
    return sorted(atoms, key=lambda atom: (atom.share, repr(atom.outcome)))


def _start(left: list[_Atom], target: _Atom) -> Fraction | None:
    """Where the stretch of the target's mass begins that has its mean share; ``None`` if there is none.

    What a stretch holds of P rises with its start and is linear between the places where an end of the
    stretch passes from one atom to the next.
    """
    edges = [Fraction(0), *itertools.accumulate(atom.mass for atom in left)]
    last = edges[-1] - target.mass
    places = sorted({s for edge in edges for s in (edge, edge - target.mass) if 0 <= s <= last})
    wanted = target.mass * target.share
    held = [_held(left, s, s + target.mass) for s in places]
    for a, b, low, high in zip(places, places[1:], held, held[1:], strict=False):
        if low <= wanted <= high:
            return a if low == high else a + (b - a) * (wanted - low) / (high - low)
    return next((s for s, amount in zip(places, held, strict=True) if amount == wanted), None)


def _held(left: list[_Atom], start: Fraction, end: Fraction) -> Fraction:
    return sum((atom.share * _overlap(left, i, start, end) for i, atom in enumerate(left)), Fraction(0))


def _overlap(left: list[_Atom], i: int, start: Fraction, end: Fraction) -> Fraction:
    """What a stretch takes of an atom, the atoms lying side by side."""
    before = sum((atom.mass for atom in left[:i]), Fraction(0))
    return max(Fraction(0), min(end, before + left[i].mass) - max(start, before))

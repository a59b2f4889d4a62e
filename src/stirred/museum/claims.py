"""What exhibits share: claims on small data sets, noise through a tape, and finite laws to enumerate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any, Protocol

from stirred.audit import Finding, Tape, exact_audit, replay_audit
from stirred.museum.exhibit import Examine
from stirred.noise import Source, discrete_gaussian, discrete_laplace
from stirred.spec import (
    Budget,
    Domain,
    Exact,
    Hamming,
    HammingUnordered,
    InputPremetric,
    Multiplicative,
    Neighbours,
    OutputPremetric,
    Schema,
    Specification,
    Stage,
    SymmetricDifference,
    Trivial,
    from_invariants,
)

ADD_OR_REMOVE = SymmetricDifference(unit="record")
ADD_OR_REMOVE_ONE = Neighbours(relation="add-remove", unit="record")
REPLACE = HammingUnordered(unit="record")
REPLACE_IN_PLACE = Hamming(unit="record")

Data = tuple[Any, ...]
Law = dict[Any, Fraction]


class Run(Protocol):
    """A mechanism that draws through a tape, broken or not."""

    def __call__(self, data: Data, tape: Tape, *, broken: bool) -> Mapping[str, Any]:
        """The artefacts that leave the building."""


class Enumerate(Protocol):
    """The exact output law of a mechanism, broken or not."""

    def __call__(self, data: Data, *, broken: bool) -> Law:
        """Each output with its probability."""


def claim(
    budget: Budget,
    change: InputPremetric = ADD_OR_REMOVE,
    measure: OutputPremetric | None = None,
    schema: Schema | None = None,
    invariants: Sequence[Any] = (),
    domain: Domain | None = None,
) -> Specification:
    """What the broken mechanism promises, and what its twin keeps."""
    return Specification(
        domain=domain or Domain(name="small data sets", stage=Stage.DATABASE, record_schema=schema),
        multiverse=from_invariants(*invariants) if invariants else Trivial(),
        input_premetric=change,
        output_premetric=measure or Multiplicative(),
        budget=budget,
        standing="published",
    )


def replayed(run: Run, x: Data, y: Data, promised: Specification, subject: str) -> Examine:
    """Record on one data set, replay on the other."""

    def examine(broken: bool, source: Source) -> Finding:
        return replay_audit(partial(run, broken=broken), x, y, promised, source, subject=subject)

    return examine


def enumerated(law: Enumerate, datasets: Sequence[Data], promised: Specification, subject: str) -> Examine:
    """Enumerate the outputs of every data set; no randomness is drawn."""

    def examine(broken: bool, source: Source) -> Finding:
        mechanism = SimpleNamespace(outcomes=partial(law, broken=broken))
        return exact_audit(mechanism, datasets, promised, subject=subject)

    return examine


def noisy(
    tape: Tape, name: str, value: Any, *, sensitivity: Fraction | int, epsilon: Fraction, **parameters: Any
) -> Any:
    """A value with discrete Laplace noise for its declared sensitivity; none if that is zero."""
    scale = Fraction(sensitivity) / epsilon

    def sampler(source: Source) -> Any:
        return value + int(discrete_laplace(source, scale, 1)[0]) if scale else value

    return tape.draw(name, value, sampler, sensitivity=sensitivity, cost=epsilon, **parameters)


def noisy_vector(
    tape: Tape,
    name: str,
    values: Sequence[int],
    *,
    squared_sensitivity: Fraction | int,
    rho_squared: Fraction,
) -> list[int]:
    """Counts with discrete Gaussian noise for the square of their declared L2 sensitivity."""
    variance = Fraction(squared_sensitivity) / (2 * rho_squared)

    def sampler(source: Source) -> list[int]:
        noise = discrete_gaussian(source, variance, len(values)).tolist()
        return [value + z for value, z in zip(values, noise, strict=True)]

    drawn: list[int] = tape.draw(
        name,
        list(values),
        sampler,
        sensitivity=Exact.sqrt(squared_sensitivity),
        cost=Exact.sqrt(rho_squared),
        norm="l2",
    )
    return drawn


def geometric(reach: int, ratio: Fraction = Fraction(1, 2)) -> Law:
    """Two-sided geometric noise, the tails from ``reach`` on lumped at its two ends.

    A mechanism whose output is the same for all noise beyond the reach has its exact law from this.
    """
    law = {z: (1 - ratio) / (1 + ratio) * ratio ** abs(z) for z in range(1 - reach, reach)}
    return law | dict.fromkeys((-reach, reach), ratio**reach / (1 + ratio))


def gathered(weighted: Iterable[tuple[Any, Fraction]]) -> Law:
    """Masses of equal outputs, added."""
    law: Law = {}
    for output, mass in weighted:
        law[output] = law.get(output, Fraction(0)) + mass
    return law


def pushed(noise: Law, function: Callable[[Any], Any]) -> Law:
    """The law of a function of the noise."""
    return gathered((function(z), mass) for z, mass in noise.items())

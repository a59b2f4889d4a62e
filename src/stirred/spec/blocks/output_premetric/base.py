"""What an output premetric is: a divergence of laws, its proved properties, and how it is counted and said.

Whoever adds up, orders, registers or explains budgets asks the premetric and knows no kinds, so that a new
one is one file. The properties follow section 5.2 of our digest of the thesis: which axioms hold, whether the
premetric is infinite between mutually singular laws (then no exact release of a non-invariant has finite
loss), whether it falls under post-processing, and how it composes and scales.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

from stirred.errors import NotComputable
from stirred.spec.arithmetic.exact import INFINITY, Exact
from stirred.spec.blocks.block import Block
from stirred.spec.blocks.budget import Budget, Parametrisation, shown, squared
from stirred.spec.finite import divergence
from stirred.spec.finite.distribution import Distribution, Outcome

UNDERFLOW = Exact.of("1e-300")
# Masses and their ratios are floats.
LEAST_MASS = Fraction(1, 10**300)
ONE = Exact.of(1)

Law = Literal["sum", "sum of squares", "product", "sum and deltas", "tensor", "none"]
Variant = Literal["Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"]
OfLaws = Callable[[Distribution, Distribution], Exact]
Bound = tuple[Exact, str]
"""A number k with D' <= k D for all pairs of laws, and the reason."""


@dataclass(frozen=True)
class Properties:
    """What is proved of an output premetric."""

    law: Law
    positive: bool = False
    symmetric: bool = False
    triangle: bool = False
    infinite_if_singular: bool = False
    post_processing: bool = False
    linear_composition: bool = False
    linear_group: bool = False
    exact: bool = True

    @property
    def metric(self) -> bool:
        """Whether all metric axioms hold."""
        return self.positive and self.symmetric and self.triangle


METRIC = Properties(
    law="sum",
    positive=True,
    symmetric=True,
    triangle=True,
    infinite_if_singular=True,
    post_processing=True,
    linear_composition=True,
    linear_group=True,
)


class Premetric(Block):
    """An output premetric, by its ``words``, its ``properties`` and the divergence ``of_laws``.

    ``coordinates`` names the numbers in which budgets of releases that are chosen one after the other add up;
    none, where that is not established. ``rank`` orders the premetrics that are known to demand more than
    others, the most demanding first. ``below`` holds the kinds that bound this premetric, ``above`` those
    that it bounds; ``monotone`` says why one of its own kind bounds it that is not weaker. ``variant`` is the
    name in the registry of deployments, ``tail`` the rule by which odds follow from the budget except with
    some probability.
    """

    kind: str
    words: ClassVar[str]
    of_laws: ClassVar[OfLaws]
    coordinates: ClassVar[tuple[str, ...]] = ()
    below: ClassVar[Mapping[str, Bound]] = {}
    above: ClassVar[Mapping[str, Bound]] = {}
    monotone: ClassVar[str] = ""
    variant: ClassVar[Variant] = "Custom"
    tail: ClassVar[str] = ""

    @property
    @abstractmethod
    def symbol(self) -> str:
        """Unicode symbol."""

    def sentence(self) -> str:
        """In words."""
        return self.words

    @property
    @abstractmethod
    def properties(self) -> Properties:
        """What is proved of it."""

    @property
    def parametrisations(self) -> tuple[Parametrisation, ...]:
        """How its budgets may be given."""
        return ("loss",)

    def between(self, p: Distribution, q: Distribution) -> Exact:
        """Divergence of two finite distributions; infinite on different spaces.

        What is computed in floating point is refused where masses, or their ratios, are beyond floats.
        """
        if p.space != q.space:
            return INFINITY
        if not self.properties.exact:
            _require_floats(p, q)
        value = self._between(p, q)
        lost = value.is_zero and self.properties.positive and p != q
        return UNDERFLOW if lost else value

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        return type(self).of_laws(p, q)

    def worst_event(self, p: Distribution, q: Distribution) -> frozenset[Outcome]:
        """An event that shows the divergence; the likeliest-ratio outcome unless said otherwise."""
        return divergence.multiplicative_event(p, q)

    def counted(self, budget: Budget) -> tuple[Exact, ...]:
        """The budget in the coordinates; the largest where it differs by universe."""
        squares = self.coordinates[0].endswith("_squared")
        rooted = squares and budget.parametrisation != self.coordinates[0]
        return (squared(budget.largest) if rooted else budget.largest,)

    def restated(self, values: Sequence[Exact]) -> tuple[Premetric, Budget]:
        """Premetric and budget of so much in the coordinates: what ``counted`` counted."""
        kind: Any = self.coordinates[0]
        if kind in self.parametrisations:
            return self, Budget.by_universe(kind, values[:1])
        root = values[0] if values[0].is_infinite else Exact.sqrt(values[0].rounded_up())
        return self, Budget.by_universe(self.parametrisations[0], (root,))

    @property
    def rank(self) -> int | None:
        """Place among the premetrics that demand more or less; ``None`` where no order is known."""
        return None

    def stronger(self, other: Self) -> bool:
        """Whether it demands more than another of its kind."""
        return False

    def bounded_by(self, source: Premetric) -> Bound | None:
        """Least known k with this premetric at most k times the source; ``None`` where there is none."""
        if type(source) is type(self):
            return (ONE, self.monotone) if self.monotone and not self.stronger(source) else None
        return self.below.get(source.kind) or source.above.get(self.kind)

    @property
    def mass(self) -> Fraction | None:
        """The delta of a bound on ratios of probabilities, zero if it has none; ``None`` for other bounds."""
        return None

    def own(self, budget: Budget) -> tuple[str, Exact]:
        """Name and value of the parameter that is guaranteed."""
        return budget.letter, budget.largest

    def log_odds(self, amount: Exact, delta: Fraction) -> Exact | None:
        """Logarithm of the factor by which odds grow at most where the divergence is at most an amount.

        Except with probability delta, for a premetric with a ``tail``; ``None`` where no factor is known.
        """
        return None

    @property
    def remark(self) -> str:
        """What a reader of the registry has to know beside the parameters."""
        return f"Measure: {self.sentence()}."

    @property
    def unseen(self) -> str:
        """The events that it leaves out, if any."""
        return ""

    def allows(self, amount: Exact, unit: str, alike: str, further: str) -> str:
        """What an amount allows for one unit, between data sets that are alike otherwise, in a sentence."""
        return f"The measured change for one {unit} is at most {shown(amount)}."


def _require_floats(p: Distribution, q: Distribution) -> None:
    if p != q and min(mass for law in (p, q) for _, mass in law.items()) < LEAST_MASS:
        raise NotComputable(
            "a mass is too small for a divergence that is computed in floating point",
            field="masses",
            expected="masses of zero, or of at least 1e-300",
            hint="Use an output premetric that is computed exactly, such as D_Mult.",
        )

"""Output premetrics that look at some events only."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Self

from pydantic import model_validator

from stirred.errors import InputError
from stirred.spec.arithmetic.exact import Exact
from stirred.spec.blocks.budget import Parametrisation
from stirred.spec.blocks.output_premetric.base import ONE, Bound, Premetric, Properties
from stirred.spec.finite.distribution import Distribution, Outcome

if TYPE_CHECKING:
    from stirred.spec.blocks.output_premetric import OutputPremetric


class Coarsened(Premetric):
    """A premetric that looks at fewer events: weaker, and disclosed wherever the flavor is shown.

    ``groups`` partitions the outcomes; only unions of groups count as events. One group alone is the
    trivial algebra, under which every mechanism has loss zero.
    """

    kind: Literal["coarsened"] = "coarsened"
    base: OutputPremetric
    groups: tuple[tuple[str | int, ...], ...]
    reason: str

    @model_validator(mode="after")
    def _partition(self) -> Self:
        members = [outcome for group in self.groups for outcome in group]
        if len(set(members)) != len(members):
            raise ValueError("groups that share no outcome")
        return self

    @property
    def properties(self) -> Properties:
        """As the base, except that different laws may look the same."""
        return replace(
            self.base.properties, positive=False, infinite_if_singular=False, post_processing=False
        )

    @property
    def parametrisations(self) -> tuple[Parametrisation, ...]:
        return self.base.parametrisations

    def worst_event(self, p: Distribution, q: Distribution) -> frozenset[Outcome]:
        members = dict(enumerate(self.groups))
        coarse = self.base.worst_event(self._pushed(p), self._pushed(q))
        return frozenset(o for index, group in members.items() if index in coarse for o in group)

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        return self.base.between(self._pushed(p), self._pushed(q))

    def _pushed(self, law: Distribution) -> Distribution:
        group: dict[Outcome, Outcome] = {
            outcome: i for i, members in enumerate(self.groups) for outcome in members
        }
        for outcome in law.support:
            if outcome not in group:
                raise InputError(
                    "the coarsened event algebra does not cover every outcome",
                    field="output_premetric.groups",
                    expected="every outcome in exactly one group",
                    hint="List the missing outcomes.",
                )
        return law.pushforward(group.__getitem__)

    def bounded_by(self, source: Premetric) -> Bound | None:
        """By the base, and by one that sees more events: a pushforward, under which an immune base falls."""
        base = source.base if isinstance(source, Coarsened) else source
        finer = not isinstance(source, Coarsened) or source.finer(self)
        if base != self.base or not finer or not self.base.properties.post_processing:
            return None
        return ONE, "looking at fewer events only lowers the premetric (R23)"

    def finer(self, other: Coarsened) -> bool:
        """Whether every group lies in one of the other's: it sees more events."""
        return all(any(set(g) <= set(h) for h in other.groups) for g in self.groups)

    def sentence(self) -> str:
        return f"{self.base.sentence()}, LOOKING ONLY AT SOME EVENTS ({self.reason})"

    @property
    def unseen(self) -> str:
        return f"events that the measure leaves out ({self.reason})"

    @property
    def symbol(self) -> str:
        return f"{self.base.symbol}|coarse"

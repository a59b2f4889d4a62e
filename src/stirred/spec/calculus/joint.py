"""What several releases of one data set promise together, in one flavor.

Composition needs one output premetric. Pure DP becomes zCDP in its own flavor, *before* the meet: there its
universes may leave no small distances (swapping: none below two), and epsilon tanh(epsilon d0 / 2) / d0 falls
in the least distance d0. Swapping at epsilon = 19.36 with TopDown at 2.63 is 12.31 together, not 190.03.

A change of unit by a factor k and the conversion may be made in either order. Converted first, the budget is
k^2 epsilon tanh(epsilon m / 2) / m with m the least distance in the old unit; converted last, the same with
m = k times the least distance in the new unit. Both are valid, and the smaller one is taken. (Swapped
households to persons, k = 2: 4 (epsilon/2) tanh(epsilon) and 2 epsilon tanh(epsilon), which are equal.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from stirred.errors import InputError, NotImplied
from stirred.spec.arithmetic.exact import ZERO
from stirred.spec.blocks.output_premetric import (
    Approximate,
    GaussianTradeOff,
    Multiplicative,
    NormalisedRenyi,
    Renyi,
)
from stirred.spec.blocks.policy import together
from stirred.spec.calculus.composition import compose, same_measure
from stirred.spec.calculus.conversion import Target, convert
from stirred.spec.calculus.unit import change_unit
from stirred.spec.specification import Flavor, Specification


class InUnit(NamedTuple):
    """A change of unit: one unit of the premetric is at most ``factor`` of the old ones, and why."""

    premetric: Any
    factor: object
    because: str


def jointly(*specifications: Specification, units: Sequence[InUnit | None] = ()) -> Specification:
    """The guarantee of several releases of one data set together, each chosen after seeing the others.

    Guarantee
        The budget holds for all outputs together: the adaptive composition of the parts in one output
        premetric. Pure parts stay pure among themselves and otherwise follow the others: to zCDP, to Renyi
        divergence of their order, to approximate DP with no delta of their own; to Gaussian DP between
        neighbours. All else is refused: state the parts in one premetric yourself.
    Assumes
        What the parts assume, the factors of ``units`` for the reasons given, and fresh seeds.
    Reference
        ``convert``, ``change_unit`` and ``compose``, in the order that gives the smaller budget.

    ``units`` says for every specification how to state it in another unit (premetric, factor, because), or
    ``None``.

    Examples
    --------
    >>> from stirred.spec import catalogue
    >>> swap, topdown = (catalogue.specification(name) for name in ("psa-2020-county", "tda-dhc"))
    >>> print(jointly(swap, topdown).budget)
    ρ² = 34.6509 in this universe
    """
    changes = [None] * len(specifications) if not units else list(units)
    if len(changes) != len(specifications):
        raise InputError(
            "the changes of unit do not match the specifications",
            field="units",
            expected="one change of unit, or None, for every specification",
            hint="Leave units out to keep every specification in its own unit.",
        )
    measure = _common_measure(specifications)
    parts = [_restated(s, measure, u) for s, u in zip(specifications, changes, strict=True)]
    return _said_once(compose(*parts, order="adaptive"))


def restate(
    specification: Specification,
    flavor: Flavor,
    *,
    factor: object = None,
    because: str = "",
    attributes: Iterable[str] | None = None,
) -> Specification:
    """The guarantee of a release stated in another flavor, or the reason why it cannot be.

    Guarantee
        The mechanism satisfies the result wherever it satisfies the specification: the output premetric is
        converted to the flavor's, a factor changes the unit, and universes and distances carry over.

    One unit of the flavor is at most ``factor`` units of the release, ``because`` says why. ``attributes``
    are, from pure DP to zCDP, all that the mechanism reads of a record of its unit (``convert``).
    """
    change = None if factor is None else InUnit(flavor.input_premetric, factor, because)
    restated = _restated(specification, flavor.output_premetric, change, attributes)
    return _said_once(compose(restated, order="adaptive", under=flavor))


def _said_once(specification: Specification) -> Specification:
    """With every assumption once, however often a guarantee is restated or joined."""
    assumptions = tuple(dict.fromkeys(specification.assumptions))
    return Specification(**dict(specification) | {"assumptions": assumptions})


def _common_measure(specifications: tuple[Specification, ...]) -> Any:
    """The output premetric to which all parts are brought."""
    others = [
        s.output_premetric for s in specifications if not isinstance(s.output_premetric, Multiplicative)
    ]
    for other in others[1:]:
        if not same_measure(other, others[0]):
            raise NotImplied(
                f"{others[0].symbol} and {other.symbol} do not compose",
                field="output_premetric",
                expected="one output premetric besides pure DP",
                hint="Convert the parts to a common one first (stirred.spec.convert): zCDP to approximate DP "
                "holds between neighbours, at a delta of your choice.",
            )
    return others[0] if others else Multiplicative()


def _restated(
    specification: Specification, measure: Any, change: InUnit | None, attributes: Iterable[str] | None = None
) -> Specification:
    """In another measure and unit: of both orders the one with the smaller budget."""
    if change is None:
        return _measured(specification, measure, attributes)
    if same_measure(specification.output_premetric, measure):
        return change_unit(specification, *change)
    found: list[Specification] = []
    refusals: list[NotImplied] = []
    for order in (_converted_first, _converted_last):
        try:
            found.append(order(specification, measure, change, attributes))
        except NotImplied as refusal:
            refusals.append(refusal)
    if not found:
        raise refusals[0]
    return _smaller(found)


def _smaller(found: list[Specification]) -> Specification:
    """The one with the smaller budget; by policies, the smaller one in every universe."""
    least = min(found, key=lambda s: s.budget.linear())
    policies = list(dict.fromkeys(s.budget.policy for s in found if s.budget.policy is not None))
    if len(policies) < 2:
        return least
    budget = least.budget.model_copy(update={"policy": together("the smaller", policies)})
    assumptions = tuple(dict.fromkeys(a for s in (least, *found) for a in s.assumptions))
    return Specification(**dict(least) | {"budget": budget, "assumptions": assumptions})


def _converted_first(
    specification: Specification, measure: Any, change: InUnit, attributes: Iterable[str] | None
) -> Specification:
    return change_unit(_measured(specification, measure, attributes), *change)


def _converted_last(
    specification: Specification, measure: Any, change: InUnit, attributes: Iterable[str] | None
) -> Specification:
    """The attributes are those of records of the old unit: in the new one they say nothing."""
    return _measured(change_unit(specification, *change), measure)


def _measured(
    specification: Specification, measure: Any, attributes: Iterable[str] | None = None
) -> Specification:
    """In another output premetric, along an edge of the conversion graph."""
    if same_measure(specification.output_premetric, measure):
        return specification
    pure = isinstance(specification.output_premetric, Multiplicative)
    if pure and isinstance(measure, Approximate):
        # D_Mult is D_Mult^delta at delta zero: the part brings no delta of its own.
        return Specification(**dict(specification) | {"output_premetric": Approximate(delta=ZERO)})
    target = _TARGETS.get(type(measure))
    if target is None or isinstance(measure, Approximate):
        raise NotImplied(
            f"{specification.output_premetric.symbol} is not restated as {measure.symbol}",
            field="output_premetric",
            expected="pure DP, or the same output premetric",
            hint="Convert the specification first (stirred.spec.convert), with a delta where one is needed.",
        )
    alpha = measure.alpha if isinstance(measure, Renyi) else None
    read = attributes if target == "zcdp" else None
    return convert(specification, target, alpha=alpha, attributes=read).specification


_TARGETS: dict[type, Target] = {NormalisedRenyi: "zcdp", Renyi: "renyi", GaussianTradeOff: "gdp"}

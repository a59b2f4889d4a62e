"""Allocation: the zCDP budget of one universe, shared out by level and by query in exact rationals.

A query of a node is measured with discrete Gaussian noise. With squared L2 sensitivity s (replace-one: 2,
add-remove: 1) and a budget r it gets the variance parameter  s / (2 r),  and budgets add up.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from stirred.errors import InputError, InvalidBudget, UnknownName
from stirred.interchange import Tabular
from stirred.spec import as_fraction
from stirred.topdown.cells import Cells

if TYPE_CHECKING:
    import polars as pl

    from stirred.spec import Schema

Change = Literal["replace-one", "add-remove"]


@dataclass(frozen=True)
class Allocation(Tabular):
    """Who gets how much of a budget: levels of the geography first, then queries within a level.

    Guarantee
        All measurements of a path from root to leaf together are ``rho_squared``-zCDP in the unit that
        ``change`` names; nodes of one level partition the records. Nominal: relative to the invariants.
    Reference
        Proposition 5 (Canonne, Kamath, Steinke 2020), coordinate by coordinate: discrete Gaussian noise of
        parameter sigma^2 on integers at squared L2 distance s is s/(2 sigma^2)-zCDP. Lemma 1.7 (Bun,
        Steinke 2016): budgets add up.

    Parameters
    ----------
    levels
        The share of each level, root first; together exactly one.
    queries
        For each level the share of each query, by its canonical name; together exactly one.
    change
        ``replace-one``: one record becomes another. ``add-remove``: one record comes or goes.

    Examples
    --------
    >>> from stirred.spec import Schema
    >>> cells = Cells(Schema.of(sex=("f", "m"), age=range(3)))
    >>> halves = {"total": "1/2", "sex * age": "1/2"}
    >>> allocation = Allocation.of(cells, 1, {"state": "1/4", "block": "3/4"}, halves)
    >>> allocation.variance("block", "detailed")
    Fraction(8, 3)
    """

    rho_squared: Fraction
    levels: Mapping[str, Fraction]
    queries: Mapping[str, Mapping[str, Fraction]]
    change: Change = "replace-one"

    def __post_init__(self) -> None:
        if self.change not in get_args(Change):
            raise InputError(
                "the unit of change is unknown",
                field="change",
                expected=" or ".join(get_args(Change)),
                hint="The Census Bureau used replace-one.",
            )
        if self.rho_squared <= 0:
            raise InvalidBudget(
                "there is no budget to share out",
                field="rho_squared",
                expected="a rational above zero",
                hint="A noisy measurement needs a positive budget.",
            )
        _check_shares(self.levels, "levels", "level")
        _check_names(self.levels, self.queries)
        for level in self.levels:
            _check_shares(self.queries[level], f"queries.{level}", f"level {level}: query")

    @classmethod
    def of(
        cls,
        cells: Cells,
        rho_squared: object,
        levels: Mapping[str, object],
        queries: Mapping[str, object],
        change: Change = "replace-one",
    ) -> Self:
        """Read shares exactly as written, and queries in any spelling.

        Numbers are integers, fractions, or text such as ``"104/4099"`` and ``"0.25"``; no floats. ``queries``
        is for each level a mapping from query to share, or one such mapping for all levels.
        """
        shared = not any(isinstance(value, Mapping) for value in queries.values())
        by_level = dict.fromkeys(levels, queries) if shared else queries
        return cls(
            _exact(rho_squared, "rho_squared"),
            {level: _exact(share, f"levels.{level}") for level, share in levels.items()},
            {level: _canonical(cells, level, shares) for level, shares in by_level.items()},
            change,
        )

    @property
    def squared_sensitivity(self) -> int:
        """The squared L2 distance between answers of one query when one unit changes."""
        return 2 if self.change == "replace-one" else 1

    def rho(self, level: str, query: str) -> Fraction:
        """The budget of one query at one level, in rho squared."""
        self._require((level,))
        if query not in self.queries[level]:
            raise UnknownName(
                f"the query {query!r} is not asked at level {level}",
                field="query",
                expected="one of " + ", ".join(self.queries[level]),
                hint="Use the canonical name: parts in the order of the schema, joined by ' * '.",
            )
        return self.rho_squared * self.levels[level] * self.queries[level][query]

    def variance(self, level: str, query: str) -> Fraction:
        """The variance parameter of the noise of one query at one level."""
        return self._variance(self.rho(level, query))

    def variances(self, chain: Sequence[str]) -> dict[str, Fraction]:
        """The variance parameter of each query where the budgets of several levels go into one measurement.

        Queries come in the order in which the levels of the chain, and then their queries, name them.
        """
        key = tuple(chain)
        if key not in self._merged:
            self._require(key)
            if not key or len(set(key)) != len(key):
                raise InputError(
                    "a measurement spends the budget of at least one level, and of each level once",
                    field="chain",
                    expected="one or more levels, all different",
                    hint="Name the levels from a node down to the last only child below it.",
                )
            spent: dict[str, Fraction] = {}
            for level in key:
                for query in self.queries[level]:
                    spent[query] = spent.get(query, Fraction(0)) + self.rho(level, query)
            self._merged[key] = {query: self._variance(rho) for query, rho in spent.items()}
        return dict(self._merged[key])

    @cached_property
    def _merged(self) -> dict[tuple[str, ...], dict[str, Fraction]]:
        return {}

    def per_level(self) -> dict[str, Fraction]:
        """The rho squared that each level spends."""
        return {level: self.rho_squared * share for level, share in self.levels.items()}

    def within(self, level: str) -> Fraction:
        """The rho squared lost if one record moves from leaf to leaf within one node of a level.

        The record keeps its attributes. Answers at that level and above it do not change; below it, one
        node loses the record and another gains it. Only children lower the loss, nothing raises it.
        """
        self._require((level,))
        names = list(self.levels)
        below = names[names.index(level) + 1 :]
        return self._moved(sum((self.levels[name] * self.rho_squared for name in below), Fraction(0)))

    def per_attribute(self, schema: Schema | Cells) -> dict[str, Fraction]:
        """The rho squared lost if one attribute of one record changes in place, for each attribute.

        Only queries that name the attribute, or a recode of it whose group changes, see such a change;
        the figure is for the two levels of the attribute that most budget tells apart. It is the loss of
        this restricted change under the same mechanism, not a guarantee for another unit of protection.
        """
        cells = schema if isinstance(schema, Cells) else Cells(schema)
        return {name: self._moved(self._seen(cells, axis)) for axis, name in enumerate(cells.names)}

    def _seen(self, cells: Cells, axis: int) -> Fraction:
        """The most budget of queries that tell two levels of an attribute apart."""
        budgets: dict[tuple[int, ...], Fraction] = {}
        for level, shares in self.queries.items():
            for query in shares:
                groups = tuple(cells.query(query).coarsenings[axis].groups.tolist())
                budgets[groups] = budgets.get(groups, Fraction(0)) + self.rho(level, query)
        every = tuple(range(cells.shape[axis]))
        plain = budgets.pop(every, Fraction(0)) if len(every) > 1 else Fraction(0)
        # Levels that all recodes put into the same groups are alike: one of them stands for all.
        signatures = set(zip(*budgets, strict=True)) if budgets else set()
        most, ceiling = Fraction(0), sum((b for g, b in budgets.items() if len(set(g)) > 1), Fraction(0))
        for one, other in itertools.combinations(sorted(signatures), 2):
            apart = (b for b, x, y in zip(budgets.values(), one, other, strict=True) if x != y)
            most = max(most, sum(apart, Fraction(0)))
            if most == ceiling:
                break
        return plain + most

    def checked_total(self) -> Fraction:
        """The total, added up again from the variance of every query at every level."""
        pairs = [(level, query) for level, shares in self.queries.items() for query in shares]
        total = sum((self.squared_sensitivity / (2 * self.variance(*pair)) for pair in pairs), Fraction(0))
        if total != self.rho_squared:
            raise InvalidBudget(
                f"the noise spends {total}, the budget is {self.rho_squared}",
                field="rho_squared",
                expected="noise that spends exactly the budget",
                hint="Shares were changed after they were checked; build the allocation anew.",
            )
        return total

    def renormalised(self, levels: Sequence[str]) -> Allocation:
        """The same total on some of the levels only, in the same proportions; root first as before."""
        self._require(levels)
        kept = {level: share for level, share in self.levels.items() if level in set(levels)}
        whole = sum(kept.values(), Fraction(0))
        return Allocation(
            self.rho_squared,
            {level: share / whole for level, share in kept.items()},
            {level: self.queries[level] for level in kept},
            self.change,
        )

    def record(self) -> dict[str, Any]:
        """The allocation as plain data, numbers as exact text; ``order`` is that of the printed table."""
        return {
            "rho_squared": str(self.rho_squared),
            "change": self.change,
            "levels": {level: str(share) for level, share in self.levels.items()},
            "queries": {
                level: {query: str(share) for query, share in self.queries[level].items()}
                for level in self.levels
            },
            "order": [[level, query] for level in self.levels for query in self.queries[level]],
        }

    def to_polars(self) -> pl.DataFrame:
        """One row for each query at each level: levels root first, queries in the given order.

        The standard deviation is the root of the variance parameter; that of a discrete Gaussian is never
        larger, and equal to many digits unless the parameter is far below one.
        """
        import polars as pl

        rows = []
        for level, level_share in self.levels.items():
            for query, query_share in self.queries[level].items():
                rho, variance = self.rho(level, query), self.variance(level, query)
                rows.append(
                    {
                        "level": level,
                        "query": query,
                        "level_share_exact": str(level_share),
                        "query_share_exact": str(query_share),
                        "rho_squared": float(rho),
                        "rho_squared_exact": str(rho),
                        "variance": float(variance),
                        "variance_exact": str(variance),
                        "standard_deviation": math.sqrt(variance),
                    }
                )
        return pl.DataFrame(rows)

    def _variance(self, rho: Fraction) -> Fraction:
        return Fraction(self.squared_sensitivity) / (2 * rho)

    def _moved(self, budget: Fraction) -> Fraction:
        """The loss of a move from cell to cell: squared distance two, whatever the noise is scaled to."""
        return budget * 2 / self.squared_sensitivity

    def _require(self, levels: Iterable[str]) -> None:
        for level in levels:
            if level not in self.levels:
                raise UnknownName(
                    f"the budget has no level {level}",
                    field="levels",
                    expected="one of " + ", ".join(self.levels),
                    hint="Correct the name, or give the level a share.",
                )


def _exact(value: object, field: str) -> Fraction:
    inexact = isinstance(value, float)
    try:
        if not inexact:
            return as_fraction(value)
    except InputError:
        pass
    raise InvalidBudget(
        "a float is not exact" if inexact else "this is not an exact rational number",
        field=field,
        expected="an integer, a fraction, or text such as 104/4099 or 0.25",
        hint="Write the number as text.",
    )


def _canonical(cells: Cells, level: str, shares: object) -> dict[str, Fraction]:
    if not isinstance(shares, Mapping):
        raise InputError(
            f"level {level} has no mapping from query to share",
            field=f"queries.{level}",
            expected="queries with their shares, for every level or once for all levels",
            hint="Do not mix the two forms.",
        )
    out: dict[str, Fraction] = {}
    for text, share in shares.items():
        name = cells.canonical(text)
        if name in out:
            raise InputError(
                f"level {level} names the query {name} twice",
                field=f"queries.{level}",
                expected="every query once, in one spelling",
                hint="Add the two shares up.",
            )
        out[name] = _exact(share, f"queries.{level}.{name}")
    return out


def _check_names(levels: Mapping[str, Any], queries: Mapping[str, Any]) -> None:
    for level in levels:
        if not queries.get(level):
            raise InputError(
                f"level {level} has no queries",
                field=f"queries.{level}",
                expected="at least one query for every level that has a share",
                hint="Give the level a query such as detailed, or leave the level out.",
            )
    for level in queries:
        if level not in levels:
            raise UnknownName(
                f"there are queries for level {level}, which has no share",
                field=f"queries.{level}",
                expected="one of " + ", ".join(levels),
                hint="Give the level a share of the budget, or leave out its queries.",
            )


def _check_shares(shares: Mapping[str, Fraction], field: str, subject: str) -> None:
    """Positive and summing to one; a share that is not is named, with the exact sum."""
    for name, share in shares.items():
        if share <= 0:
            raise InvalidBudget(
                f"{subject} {name} has no budget",
                field=f"{field}.{name}",
                expected="a share above zero",
                hint="Leave out what is not measured.",
            )
    total = sum(shares.values(), Fraction(0))
    if total != 1:
        place = "the levels" if field == "levels" else f"the queries of {subject.split(':', 1)[0]}"
        raise InvalidBudget(
            f"the shares of {place} sum to {total}",
            field=field,
            expected="shares that sum to exactly 1",
            hint="Write shares as fractions over one denominator.",
        )

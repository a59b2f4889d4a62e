"""The Permutation Swapping Algorithm as a mechanism: guarantee first, then release.

Guarantee
    epsilon-DP(X, D_c_Swap, d_HamS^unit, D_Mult) with the epsilon of Theorem 1: pure differential privacy
    relative to the swapping invariants, which are published exactly.
Assumes
    Each record's matching, holding and swapping variables are its own; randomness is fresh.
Reference
    Algorithm 1, Theorem 1 and Proposition 4 of Bailie, Gong and Meng.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stirred.data import require_columns, require_levels, row_hashes, tabulate
from stirred.errors import InputError, NotComputable, Refusal
from stirred.noise import RandomSource, Source
from stirred.spec import (
    Attribute,
    Budget,
    Condition,
    Count,
    Domain,
    Exact,
    HammingUnordered,
    Invariants,
    Multiplicative,
    Release,
    Schema,
    Specification,
    Stage,
    Standing,
    Stated,
    Swapping,
    as_fraction,
    swapping_invariants,
    swapping_loss,
    trial,
)
from stirred.swap.derangement import Rates, draw_donors
from stirred.swap.exposure import exposure_of
from stirred.swap.loss import tighter_loss, variable_rate_loss
from stirred.swap.nesting import require_nested, require_whole
from stirred.swap.order import random_order
from stirred.swap.prepared import Prepared
from stirred.swap.rate import VariableRate
from stirred.swap.records import Records, as_records
from stirred.swap.roles import Roles
from stirred.swap.sampling import columns_of, sample_outcomes
from stirred.swap.strata import InvariantReport, Strata

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

LARGEST_TABLE = 20_000_000
LARGEST_COUNTED = 200_000
UNCOVERED = (
    "imputed records are published as they are; a respondent whose answer changes an imputed record is not "
    "covered by this guarantee"
)


@dataclass(frozen=True)
class PermutationSwap:
    """Swap records within strata.

    Parameters
    ----------
    match
        Matching variables (the swap key); may be empty.
    swap
        Swapping variables; they travel together.
    hold
        Holding variables besides the swap key; all other columns if not given.
    rate
        The swap rate, exactly (``"0.05"``, ``Fraction(1, 20)``), or a ``VariableRate``.
    unit
        What a record is: the protection unit.
    imputed
        Name of a true/false column: records that are true are held fixed and published exactly.
    nesting
        Pairs (finer, coarser) of places that must stay consistent; those of the domain count too. An empty
        list says that nothing is nested, ``None`` that nobody said.
    loss
        ``"theorem-1"`` of the paper, or ``"tighter"``: a smaller loss, proved in our documentation.
    missing
        ``"error"`` refuses missing values; ``"level"`` makes them a level of their own.
    allow_infinite_loss
        Permit the rates 0 and 1, whose loss is infinite.
    codebook
        A schema with levels: a record with a value outside them is refused, and the domain carries it.
    domain
        All possible data sets, where several releases are to be compared or composed: the same object for
        all of them. If not given, it is made of the variables that have a role.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"size": [1, 1, 2, 2], "owner": [0, 1, 0, 1], "county": [1, 2, 1, 2]})
    >>> psa = PermutationSwap(match=("size",), swap=("county",), rate="0.5")
    >>> print(psa.guarantee(frame))
    ε-DP(X, 𝒟_c_Swap, d_HamS^hh, D_Mult), ε = 1.0987 in this universe
    """

    match: Sequence[str]
    swap: Sequence[str]
    rate: object
    hold: Sequence[str] | None = None
    unit: str = "household"
    imputed: str | None = None
    nesting: Sequence[tuple[str, str]] | None = None
    loss: Literal["theorem-1", "tighter"] = "theorem-1"
    missing: Literal["error", "level"] = "error"
    allow_infinite_loss: bool = False
    stage: Stage = Stage.EDITED_FILE
    codebook: Schema | None = None
    domain: Domain | None = None
    _fixed: Fraction | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        if isinstance(self.rate, VariableRate):
            if self.loss == "tighter":
                raise Refusal(
                    "the tighter loss is for one common rate",
                    field="loss",
                    expected="theorem-1",
                    hint="Variable rates have a proved loss of their own.",
                )
            return
        rate = as_fraction(self.rate)
        if not 0 <= rate <= 1:
            raise InputError(
                "the swap rate is not a probability",
                field="rate",
                expected="a number above 0 and below 1",
                hint="Write 0.05 for five per cent.",
            )
        if rate in (0, 1) and not self.allow_infinite_loss:
            raise Refusal(
                "a swap rate of 0 or 1 has infinite loss",
                field="rate",
                expected="a number above 0 and below 1",
                hint="Pass allow_infinite_loss (--allow-infinite-loss) to do it all the same.",
            )
        object.__setattr__(self, "_fixed", rate)

    def guarantee(self, data: object) -> Specification:
        """The specification, from the sizes of the strata alone (a function of the invariants)."""
        prepared = self.prepare(as_records(data))
        return self.specification(prepared)

    def report(self, data: object) -> InvariantReport:
        """What the invariants fix and what they leave."""
        return self.report_of(self.prepare(as_records(data)))

    def report_of(self, prepared: Prepared) -> InvariantReport:
        """What the invariants of prepared records fix and what they leave."""
        report = InvariantReport.of(
            prepared.records.households,
            prepared.roles,
            prepared.strata,
            self.unit,
            self.missing,
            exposure_of(prepared, self.unit, self.missing, self.imputed),
        )
        return replace(report, persons=_with_persons(prepared).hold[len(prepared.roles.hold) :])

    def release(self, data: object, random: Source | None = None) -> Release:
        """Swap, verify the invariants, and put the records in a fresh random order with new identifiers."""
        source = RandomSource() if random is None else random.spawn()
        prepared = self.prepare(as_records(data))
        specification = self.specification(prepared)
        donors = self.donors(prepared, source.child(0))
        order = random_order(prepared.records.households.height, source.child(1))
        households = self.arranged(prepared, donors, order)
        products: dict[str, Any] = {"households": households}
        if prepared.records.persons is not None:
            products["persons"] = self._persons(prepared, households, order, source.child(2))
            self._require_together(prepared, households, products["persons"])
        if prepared.records.id is not None:
            products["households"] = households.with_columns(_new_ids(prepared.records.id, households.height))
        self.verify(prepared, products["households"])
        if self._table_fits(prepared):
            names = (*prepared.roles.match, *prepared.roles.hold, *prepared.roles.swap)
            products["table"] = tabulate(households, names)
        return Release(
            products=products,
            specification=specification,
            uncertainty={"law": "permutation within strata", "rate": str(self.rate)},
            diagnostics={"swapped_share": float((donors != np.arange(donors.size)).mean())},
            reason=unpublishable(source, specification),
        )

    def donors(self, prepared: Prepared, source: Source) -> NDArray[Any]:
        """For every record the record whose swapping values it receives."""
        return draw_donors(
            prepared.strata.codes,
            prepared.strata.count,
            prepared.rates,
            source,
            eligible=prepared.eligible,
            threads=os.cpu_count() or 1,
        )

    def prepare(self, records: Records) -> Prepared:
        """Check roles, rates and flags, and form the strata: all that can fail, before anything is drawn."""
        frame = records.households
        ignore = [records.id] if records.id is not None else []
        roles = Roles.resolve(frame, self.match, self.swap, self.hold, ignore)
        if self.codebook is not None:
            require_levels(frame, self.codebook, (*roles.match, *roles.hold, *roles.swap))
        self._require_whole(records, roles)
        eligible = None
        if self.imputed is not None:
            eligible = self._not_imputed(frame, roles)
        rates = Rates.common(self._fixed) if self._fixed is not None else None
        if isinstance(self.rate, VariableRate):
            self.rate.check(roles)
            rates = self.rate.rates(frame, self.missing)
        assert rates is not None
        strata = Strata.of(frame, roles, missing=self.missing, eligible=eligible)
        if records.persons is not None:
            strata = replace(strata, hold_varies=strata.eligible_sizes >= 2)
        return Prepared(records, roles, strata, rates, eligible)

    def declared_nesting(self) -> tuple[tuple[str, str], ...] | None:
        """Pairs (finer, coarser) that the mechanism or its domain declares; ``None`` if nobody said."""
        schema = self.domain.record_schema if self.domain is not None else None
        given = schema.nesting if schema is not None else ()
        return None if self.nesting is None and not given else (*(self.nesting or ()), *given)

    def _require_whole(self, records: Records, roles: Roles) -> None:
        """Refuse roles that tear the declared places apart, and data that break them."""
        frame, nesting = records.households, self.declared_nesting() or ()
        persons = [] if records.persons is None else records.persons.columns
        own = [name for name in persons if name not in frame.columns]
        named = dict.fromkeys(name for pair in self.nesting or () for name in pair)
        require_columns(frame, [name for name in named if name not in own], "nesting")
        shared = [name for name in persons if name not in (*own, *roles.swap)]
        require_whole(nesting, roles.match, roles.swap, (*roles.hold, *shared), own)
        require_nested(frame, nesting)

    def _not_imputed(self, frame: pl.DataFrame, roles: Roles) -> NDArray[np.bool_]:
        import polars as pl

        assert self.imputed is not None
        require_columns(frame, (self.imputed,), "imputed")
        column = frame[self.imputed]
        if (
            column.dtype != pl.Boolean
            or column.null_count()
            or self.imputed not in (*roles.match, *roles.hold)
        ):
            raise InputError(
                f"the imputation flag {self.imputed} is not usable",
                field="imputed",
                expected="a true/false column without gaps, among the holding or matching variables",
                hint="The flag belongs to the record and stays with it.",
            )
        flags: NDArray[np.bool_] = ~column.to_numpy()
        return flags

    def specification(self, prepared: Prepared) -> Specification:
        """The guarantee of prepared records."""
        roles = _with_persons(prepared)
        multiverse = swapping_invariants(self.unit, roles.match, roles.swap, roles.hold)
        assumptions: tuple[str, ...] = ()
        if self.imputed is not None:
            imputed = Count(
                unit=self.unit,
                by=(*roles.match, *roles.hold, *roles.swap),
                where=(Condition(attribute=self.imputed, levels=("true",)),),
            )
            multiverse = Invariants(invariants=(*multiverse.invariants, imputed), label="c_Swap")
            assumptions = (UNCOVERED,)
        budget, standing = self._budget(prepared)
        return Specification(
            domain=self._domain(roles),
            multiverse=multiverse,
            input_premetric=HammingUnordered(unit=self.unit),
            output_premetric=Multiplicative(),
            budget=budget,
            assumptions=assumptions,
            standing=standing,
        )

    def _domain(self, roles: Roles) -> Domain:
        if self.domain is not None:
            return self.domain
        names = (*roles.match, *roles.hold, *roles.swap)
        return Domain(
            name="X",
            stage=self.stage,
            structure="multiset",
            meaning=f"all possible files of {self.unit} records with the variables {', '.join(names)}",
            record_schema=Schema(
                attributes=tuple(self._attribute(name) for name in names),
                nesting=tuple(pair for pair in self.nesting or () if set(pair) <= set(names)),
            ),
        )

    def _attribute(self, name: str) -> Attribute:
        listed = self.codebook.attributes if self.codebook is not None else ()
        return next((a for a in listed if a.name == name), Attribute(name=name))

    def _budget(self, prepared: Prepared) -> tuple[Budget, Standing]:
        """The loss as a policy over universes, and its value in that of the records."""
        b, match = prepared.strata.largest, prepared.roles.match
        if isinstance(self.rate, VariableRate):
            loss, policy = variable_rate_loss(_extreme_rates(prepared)), Stated(text=self._variable(match))
            return Budget.epsilon(loss, policy, (self._rule(match).at(b),)), "proved"
        assert self._fixed is not None
        rule = self._rule(match)
        loss = (tighter_loss if rule.theorem == "B" else swapping_loss)(b, self._fixed)
        return Budget.epsilon(loss, rule, (rule.at(b),)), "proved"

    def _rule(self, match: tuple[str, ...]) -> Swapping:
        """The policy of one common rate."""
        return Swapping(
            theorem="B" if self.loss == "tighter" else "1",
            unit=self.unit,
            match=match,
            rate=Exact(self._fixed or Fraction(1, 2)),
            where="" if self.imputed is None else "that are not imputed",
        )

    def _variable(self, match: Sequence[str]) -> str:
        """The policy with all its parameters."""
        assert isinstance(self.rate, VariableRate)
        among = "" if self.imputed is None else " that are not imputed"
        rates = "; ".join(f"{' '.join(map(str, key))}: {rate}" for key, rate in self.rate.table)
        return (
            f"{VARIABLE_RULE}. Strata of {self.unit} records{among} by {', '.join(match) or 'nothing'}; "
            f"rates by {', '.join(self.rate.by)}: {rates}; otherwise {self.rate.otherwise}"
        )

    def arranged(self, prepared: Prepared, donors: NDArray[Any], order: NDArray[Any]) -> pl.DataFrame:
        """Gather every column once: held columns by the new order, swapped columns through the donors."""
        import polars as pl

        frame, roles = prepared.records.households, prepared.roles
        rows, givers = pl.Series(order), pl.Series(donors[order])
        names = [c for c in frame.columns if c in {*roles.match, *roles.hold, *roles.swap}]
        return pl.DataFrame([frame[name].gather(givers if name in roles.swap else rows) for name in names])

    def _persons(
        self, prepared: Prepared, households: pl.DataFrame, order: NDArray[Any], source: Source
    ) -> pl.DataFrame:
        """Persons follow their household: new identifier, new places, fresh order within it."""
        import polars as pl

        records, roles = prepared.records, prepared.roles
        assert records.persons is not None
        assert records.id is not None
        moved = [name for name in roles.swap if name in records.persons.columns]
        link = pl.DataFrame(
            {
                records.id: records.households[records.id].gather(pl.Series(order)),
                "__new": pl.int_range(households.height, eager=True, dtype=pl.Int64),
            }
        ).with_columns(households[name].alias(f"__{name}") for name in moved)
        shuffled = records.persons[pl.Series(random_order(records.persons.height, source))]
        joined = shuffled.join(link, on=records.id, how="left").sort("__new", maintain_order=True)
        replaced = [pl.col(f"__{name}").alias(name) for name in moved]
        return joined.with_columns(*replaced, pl.col("__new").alias(records.id)).select(
            records.persons.columns
        )

    def _require_together(self, prepared: Prepared, households: pl.DataFrame, persons: pl.DataFrame) -> None:
        """Stop a release in which somebody is not where their household is."""
        import polars as pl

        records = prepared.records
        assert records.id is not None
        rows = pl.Series(persons[records.id].to_numpy())
        for name in prepared.roles.swap:
            if name in persons.columns and not persons[name].equals(
                households[name].gather(rows), check_names=False, null_equal=True
            ):
                raise Refusal(
                    f"persons and their households differ in {name}",
                    field="persons",
                    expected="persons who follow their household",
                    hint="Nothing was written. This is a defect: please report it.",
                )

    def verify(self, prepared: Prepared, output: pl.DataFrame) -> None:
        """Recount both families of invariant tables on the output; a difference stops the release."""
        roles, before = prepared.roles, prepared.records.households
        key = secrets.randbits(64)
        tables = [((*roles.match, *roles.hold), False), ((*roles.match, *roles.swap), False)]
        if self.imputed is not None:
            tables.append(((*roles.match, *roles.hold, *roles.swap), True))
        for names, only_imputed in tables:
            flag = self.imputed if only_imputed and self.imputed is not None else True
            pair = [frame.filter(flag) for frame in (before, output)] if only_imputed else [before, output]
            if not _same_table(pair[0], pair[1], names, key):
                raise Refusal(
                    f"the swapped records do not keep the table of {', '.join(names)}",
                    field="invariants",
                    expected="both swapping invariants, exactly",
                    hint="Nothing was written. This is a defect: please report it.",
                )

    def _table_fits(self, prepared: Prepared) -> bool:
        return prepared.records.households.height <= LARGEST_TABLE

    def outcomes(self, data: object) -> dict[Any, Fraction]:
        """Every product with its exact probability, for small data: the slow twin of ``release``."""
        from stirred.swap.enumeration import outcomes

        prepared = self._small(data)
        records = list(zip(*columns_of(prepared), strict=True))
        classes = prepared.rates.classes
        rates = [
            prepared.rates.values[0 if classes is None else int(classes[i])] for i in range(len(records))
        ]
        able = None if prepared.eligible is None else prepared.eligible.tolist()
        return outcomes(records, rates, able)

    def sample(self, data: object, count: int, random: Source) -> list[Any]:
        """Independent draws by the code that releases use, for small data; named as ``outcomes`` does."""
        return sample_outcomes(self, self._small(data), count, random.spawn())

    def _small(self, data: object) -> Prepared:
        prepared = self.prepare(as_records(data))
        if prepared.records.households.height > 8 or prepared.records.persons is not None:
            raise NotComputable(
                "outcomes are enumerated for at most eight records without persons",
                field="data",
                expected="a small table of households",
                hint="Audit a small twin of the data instead.",
            )
        return prepared


VARIABLE_RULE = (
    "the largest, over strata with two distinct records, of ln(n+1) - ln o_min and ln o_max, with n the size "
    "of the stratum and o_min, o_max the extreme odds p/(1-p) in it"
)


def _with_persons(prepared: Prepared) -> Roles:
    """Persons are part of their household's record: what is known of them is held, and published exactly."""
    records, roles = prepared.records, prepared.roles
    if records.persons is None:
        return roles
    own = [c for c in records.persons.columns if c not in {records.id, *roles.swap}]
    return Roles(roles.match, roles.swap, (*roles.hold, *(f"person_{name}" for name in own)))


def unpublishable(source: Source, specification: Specification) -> str:
    """Why swapped records are not for publication: they are a trial, and what else stands in the way."""
    others = [] if source.publishable else ["it was made with a test seed"]
    certified = specification.standing in {"proved", "enumerated"}
    return trial(*others, *([] if certified else ["its guarantee is not certified"]))


def _extreme_rates(prepared: Prepared) -> list[tuple[int, Fraction, Fraction]]:
    """Size and extreme rates of every stratum with two distinct records."""
    strata, rates = prepared.strata, prepared.rates
    assert rates.classes is not None
    low = np.full(strata.count, len(rates.values), dtype=np.int64)
    high = np.full(strata.count, -1, dtype=np.int64)
    able = slice(None) if prepared.eligible is None else prepared.eligible
    np.minimum.at(low, strata.codes[able], rates.classes[able])
    np.maximum.at(high, strata.codes[able], rates.classes[able])
    keep = np.flatnonzero(strata.distinct)
    triples = np.unique(np.stack([strata.eligible_sizes[keep], low[keep], high[keep]], axis=1), axis=0)
    return [(int(n), rates.values[int(a)], rates.values[int(b)]) for n, a, b in triples]


def _same_table(before: pl.DataFrame, after: pl.DataFrame, names: Sequence[str], key: int) -> bool:
    """Whether some columns have the same counts: recounted if few records, by an order-free hash if many."""
    if max(before.height, after.height) <= LARGEST_COUNTED:
        return tabulate(before, names).equals(tabulate(after, names))
    sums = []
    for frame in (before, after):
        hashes = row_hashes(frame, names, key)
        sums.append((hashes.sum(dtype=np.uint64), (hashes * hashes).sum(dtype=np.uint64), frame.height))
    return bool(sums[0] == sums[1])


def _new_ids(name: str, count: int) -> Any:
    import polars as pl

    return pl.int_range(count, eager=True, dtype=pl.Int64).alias(name)

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
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stirred.data import require_columns, require_levels
from stirred.errors import InputError, NotComputable, Refusal, UnknownName
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
    Mechanism,
    Multiplicative,
    Products,
    Release,
    Schema,
    Specification,
    Stage,
    Standing,
    Stated,
    Swapping,
    Uncertainty,
    as_fraction,
    require_prepared,
    swapping_invariants,
    swapping_loss,
    trial,
)
from stirred.swap.arrangement import arranged, require_parts
from stirred.swap.derangement import Rates, draw_donors
from stirred.swap.loss import swap_probability, tighter_loss, variable_rate_loss
from stirred.swap.nesting import require_nested, require_whole
from stirred.swap.prepared import Prepared, Public
from stirred.swap.primitive import COUNT, Swapped, aligned, counted, table_key
from stirred.swap.rate import VariableRate
from stirred.swap.records import Records, as_records
from stirred.swap.roles import Roles
from stirred.swap.sampling import columns_of, sample_outcomes
from stirred.swap.strata import Strata

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from stirred.swap.primitive import Counts

CHOICES = {"loss": ("theorem-1", "tighter"), "missing": ("error", "level")}
MOVED = Uncertainty("permutation within strata")
UNCOVERED = (
    "imputed records are published as they are; a respondent whose answer changes an imputed record is not "
    "covered by this guarantee"
)


@dataclass(frozen=True)
class PermutationSwap(Mechanism):
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
    tables
        Tables to make of the swapped households, written ``tenure * county``.
    by
        A column: the swapped households come in one part for each of its values.
    domain
        All possible data sets, where several releases are to be compared or composed: the same object for
        all of them. If not given, it is made of the variables that have a role.

    Examples
    --------
    >>> import polars as pl
    >>> import stirred as st
    >>> frame = pl.DataFrame({"size": [1, 1, 2, 2], "owner": [0, 1, 0, 1], "county": [1, 2, 1, 2]})
    >>> psa = st.Swap(match=("size",), swap=("county",), rate="0.5")
    >>> print(psa.guarantee(psa.prepare(frame)))
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
    tables: Sequence[str] = ()
    by: str | None = None
    _fixed: Fraction | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise UnknownName(
                    f"this {name} is not known",
                    field=name,
                    expected="one of " + ", ".join(choices),
                    hint="Write it as it stands here.",
                )
        for name in ("match", "swap", "hold", "tables", "nesting"):
            if isinstance(getattr(self, name), str):
                raise InputError(
                    f"{name} is a text, not a list",
                    field=name,
                    expected="a list of names, such as ('county',)",
                    hint="Put the name in brackets, with a comma behind it.",
                )
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

    def draw(self, prepared: Prepared, random: Source | None = None) -> Swapped:
        """Swap, verify the invariants, and put the records in a fresh random order with new identifiers."""
        require_prepared(prepared, Prepared)
        source = RandomSource() if random is None else random.spawn()
        return arranged(prepared, self.donors(prepared, source.child(0)), source)

    def finish(self, primitive: Swapped, public: Public) -> Release:
        """The swapped records and the tables that were asked for, counted when they are looked at."""
        frames = {"households": primitive.households, "persons": primitive.persons}
        products: dict[str, Any] = {
            name: (lambda frame=frame: frame) for name, frame in frames.items() if frame is not None
        }
        products["table"] = partial(counted, primitive.households, public.columns)
        uncertainty = dict.fromkeys(products, MOVED)
        for parts, found in public.uncertainty.items():
            products[table_key(parts)] = partial(counted, primitive.households, parts)
            uncertainty[table_key(parts)] = found
        if primitive.parts:
            products["parts"] = lambda: primitive.parts
        reason = unpublishable(primitive.publishable, public.specification)
        return Release(Products(products), public.specification, uncertainty, reason=reason)

    def assess(
        self, primitive: Swapped, prepared: Prepared, made: Release | None = None
    ) -> dict[str, tuple[Counts, Counts]]:
        """True and swapped counts of the cells of every table: confidential."""
        true = prepared.records.households
        made = self.finish(primitive, prepared.public) if made is None else made
        return {
            " * ".join(parts): aligned(counted(true, parts), made.products[table_key(parts)], parts)
            for parts in self.named_tables
        }

    @property
    def named_tables(self) -> tuple[tuple[str, ...], ...]:
        """The columns of every table."""
        return tuple(tuple(part.strip() for part in table.split("*")) for table in self.tables)

    def uncertainty(self, parts: Sequence[str], prepared: Prepared) -> Uncertainty:
        """How uncertain the counts of a table are; from the invariants alone."""
        roles = prepared.roles
        if not set(parts) & set(roles.swap) or not set(parts) - {*roles.swap, *roles.match}:
            return Uncertainty.exact("the table is invariant under swapping")
        if not prepared.strata.largest:
            return Uncertainty.exact("no stratum has two distinct records")
        if self._fixed is None:
            return MOVED
        return replace(MOVED, scale=float(swap_probability(prepared.strata.largest, self._fixed)))

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

    def prepare(self, dataset: object) -> Prepared:
        """Check roles, rates and flags, and form the strata: all that can fail, before anything is drawn."""
        records = as_records(dataset)
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
        prepared = Prepared(self, records, roles, strata, rates, eligible)
        for parts in self.named_tables:
            require_columns(frame.select(*roles.match, *roles.hold, *roles.swap), parts, "tables")
            if len(set(parts)) < len(parts) or COUNT in parts:
                raise InputError(
                    f"the table {' * '.join(parts)} cannot be counted",
                    field="tables",
                    expected=f"different columns, none of them called {COUNT}",
                    hint="Name every column once; rename the column.",
                )
        if self.by is not None:
            require_parts(prepared, self.by)
        return prepared

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

    def guarantee(self, prepared: Prepared) -> Specification:
        """The specification, from the sizes of the strata alone (a function of the invariants)."""
        require_prepared(prepared, Prepared)
        roles = prepared.known
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
            rate=Exact(Fraction(1, 2) if self._fixed is None else self._fixed),
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

    def outcomes(self, prepared: Prepared) -> dict[Any, Fraction]:
        """Every primitive with its exact probability, for small data: the slow twin of ``draw``."""
        from stirred.swap.enumeration import outcomes

        _require_small(prepared)
        records = list(zip(*columns_of(prepared), strict=True))
        classes = prepared.rates.classes
        rates = [
            prepared.rates.values[0 if classes is None else int(classes[i])] for i in range(len(records))
        ]
        able = None if prepared.eligible is None else prepared.eligible.tolist()
        return outcomes(records, rates, able)

    def sample(self, prepared: Prepared, count: int, random: Source) -> list[Any]:
        """Independent draws by the code that releases use, for small data; named as ``outcomes`` does."""
        _require_small(prepared)
        return sample_outcomes(self, prepared, count, random.spawn())


def _require_small(prepared: Prepared) -> None:
    if prepared.records.households.height > 8 or prepared.records.persons is not None:
        raise NotComputable(
            "outcomes are enumerated for at most eight records without persons",
            field="data",
            expected="a small table of households",
            hint="Audit a small twin of the data instead.",
        )


VARIABLE_RULE = (
    "the largest, over strata with two distinct records, of ln(n+1) - ln o_min and ln o_max, with n the size "
    "of the stratum and o_min, o_max the extreme odds p/(1-p) in it"
)


def unpublishable(secure: bool, specification: Specification) -> str:
    """Why swapped records are not for publication: they are a trial, and what else stands in the way."""
    others = [] if secure else ["it was made with a test seed"]
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

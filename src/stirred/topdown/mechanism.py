"""The TopDown Algorithm as a mechanism: guarantee first, then measurements, then estimation.

Guarantee
    rho-DP(X, D_c, d_HamS^unit, D_NoR) with rho squared the total of the allocations: zero-concentrated DP
    relative to the declared invariants, which are published exactly. Estimation reads the noisy
    measurements and the invariants and nothing else, so it spends nothing.
Assumes
    Every record lies in one leaf and one cell; the spine is public; randomness is fresh.
Reference
    Abowd et al., "The 2020 Census Disclosure Avoidance System TopDown Algorithm" (2022); Theorem 2 of Bailie,
    Gong and Meng.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from stirred.data import Histogram, Spine, count_cells, levels_of
from stirred.errors import InputError, UnknownName
from stirred.extras import require
from stirred.interchange import as_polars
from stirred.noise import RandomSource, Source
from stirred.places import slug
from stirred.spec import (
    Attribute,
    Budget,
    Domain,
    Exact,
    HammingUnordered,
    Invariants,
    Mechanism,
    NormalisedRenyi,
    Release,
    Schema,
    Specification,
    Stage,
    SymmetricDifference,
    Trivial,
    Uncertainty,
    change_unit,
    compose,
    plural,
    require_prepared,
    trial,
)
from stirred.topdown.accuracy import Accuracy, accuracy
from stirred.topdown.algebra import Algebra
from stirred.topdown.bounds import Bounds
from stirred.topdown.budget import Allocation
from stirred.topdown.cells import Cells, Query
from stirred.topdown.constraint import (
    Declared,
    EqualTo,
    Facilities,
    Invariant,
    StructuralZero,
    as_constraints,
)
from stirred.topdown.divergence import squared_divergence
from stirred.topdown.estimates import Estimates
from stirred.topdown.estimation import Estimator, Settings, estimate
from stirred.topdown.information import Information
from stirred.topdown.invariants import (
    Values,
    earlier_key,
    facilities,
    invariant_values,
    level_number,
    matching,
    split_count,
    value_key,
)
from stirred.topdown.measurement import Design, Measurements, measure
from stirred.topdown.prepared import Noisy, Prepared, Public

ONE_RECORD = (
    "one {first} record belongs to one {other} record, whose membership is fixed: changing one {first} "
    "changes at most one {other}; a change of a {other} alone, or of who lives where, is not covered"
)
TWO_RECORDS = (
    "one {first} record belongs to one {other} record at a time: changing one {first}, a move included, "
    "changes at most two {other} records; a change of a {other} alone is not covered"
)
NOISE = Uncertainty("discrete Gaussian", note="the variance parameter stands beside every count")
ESTIMATE = Uncertainty("estimate", note="intervals of tables are those of Gls")
MEASUREMENTS = "measurements"
INSECURE = "the measurements were made with a test seed or in unknown ways"
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class Universe:
    """One kind of record that is measured and estimated: its schema, its budget, how it is estimated.

    ``touched`` says how many of its records one record of the first unit changes at most: one, where nobody
    moves from one to another, or two, where a move empties one and fills another.
    """

    unit: str
    schema: Schema
    allocation: Allocation
    settings: Settings = field(default_factory=Settings)
    touched: Literal[1, 2] = 1


@dataclass(frozen=True, eq=False)
class Earlier:
    """An earlier release of the same data with which this one is made consistent: its budget is composed.

    ``estimates`` are its published tables; constraints of kind ``equal_to`` name it.
    """

    name: str
    specification: Specification
    estimates: Estimates


class TopDown(Mechanism):
    """Measure every node of a spine with noise, then estimate consistent integer tables.

    Parameters
    ----------
    spine
        The public geography.
    universes
        The kinds of records to protect; the guarantee is for the unit of the first.
    constraints
        Invariants, bounds, structural zeros, edits, equalities to earlier releases.
    counted
        Schemas of units that are only counted by invariants (facilities, say), not measured.
    earlier
        Earlier releases that constraints refer to.
    domain
        All possible data sets, where several releases with different schemas are to be composed: the same
        object for all of them. If not given, it is made of the units' own schemas.

    Examples
    --------
    >>> import polars as pl
    >>> import stirred as st
    >>> from stirred.topdown import Allocation, Cells, Universe
    >>> blocks = pl.DataFrame({"county": ["1", "1"], "block": ["1a", "1b"]})
    >>> spine = st.data.Spine.from_columns(blocks, ["county", "block"])
    >>> schema = st.spec.Schema.of(sex=("f", "m"))
    >>> budget = Allocation.of(Cells(schema), 2, {"county": "1/2", "block": "1/2"}, {"detailed": 1})
    >>> print(st.TopDown(spine, [Universe("person", schema, budget)]).guarantee())
    ρ-DP(X, {X}, d_HamS^p, D_NoR), ρ² = 2
    """

    def __init__(
        self,
        spine: Spine,
        universes: Sequence[Universe],
        constraints: Sequence[object] = (),
        counted: Mapping[str, Schema] | None = None,
        earlier: Sequence[Earlier] = (),
        stage: Stage = Stage.EDITED_FILE,
        domain: Domain | None = None,
    ) -> None:
        require("topdown")
        self.spine = spine
        self.universes = tuple(universes)
        self.constraints = as_constraints(constraints)
        self.earlier = tuple(earlier)
        self.stage = stage
        self._given_domain = domain
        self.units = {u.unit: Cells(u.schema) for u in universes}
        self.units |= {unit: Cells(schema) for unit, schema in (counted or {}).items()}
        self._check(counted or {})
        self.designs = {u.unit: Design(self.units[u.unit], spine, u.allocation) for u in universes}

    def _check(self, counted: Mapping[str, Schema]) -> None:
        names = [u.unit for u in self.universes]
        if not names or len(set(names)) != len(names) or set(names) & {*counted, MEASUREMENTS}:
            raise InputError(
                "the universes are empty or share a name",
                field="universes",
                expected=f"one or more universes, each with its own unit, and none called {MEASUREMENTS}",
                hint="Persons and housing units, for example.",
            )
        for universe in self.universes:
            if tuple(universe.allocation.levels) != self.spine.levels:
                raise InputError(
                    f"the budget of {universe.unit} is for other levels than the spine has",
                    field="budget.levels",
                    expected=", ".join(self.spine.levels),
                    hint="Give every level a share, or renormalise the budget to these levels.",
                )
            if universe.settings.estimator not in get_args(Estimator):
                raise UnknownName(
                    f"the estimator of {universe.unit} is unknown",
                    field="settings.estimator",
                    expected="one of " + ", ".join(get_args(Estimator)),
                    hint="multipass is the Census Bureau's; gls uses all measurements below a node.",
                )
            for name in set(self.spine.levels) & set(universe.schema.names):
                raise InputError(
                    f"the attribute {name} of {universe.unit} has the name of a level",
                    field="schema",
                    expected="attributes and levels with different names",
                    hint="Rename the column.",
                )
            for name in universe.settings.chain:
                self.units[universe.unit].query(name)
            for level, passes in universe.settings.passes.items():
                if level not in self.spine.levels:
                    raise UnknownName(
                        f"the passes of {universe.unit} name the level {level}",
                        field="passes",
                        expected="one of " + ", ".join(self.spine.levels),
                        hint="Passes are declared for levels of the spine.",
                    )
                for name in itertools.chain(*passes):
                    self.units[universe.unit].query(name)
        for release in self.earlier:
            if release.estimates.spine.table().rows() != self.spine.table().rows():
                raise InputError(
                    f"the release {release.name} has another geography",
                    field="earlier",
                    expected="the same spine in both releases",
                    hint="Tabulate the earlier release on this geography first.",
                )
        for declared in self.constraints:
            self._check_constraint(declared)

    def _check_constraint(self, declared: Declared) -> None:
        """Refuse a declaration that names an unknown unit, level, attribute, or count of facilities."""
        unit = declared.count.unit if isinstance(declared, Invariant) else declared.unit
        if unit not in self.units:
            raise UnknownName(
                f"a constraint speaks of {unit}, which is not declared",
                field="constraints.unit",
                expected="one of " + ", ".join(self.units),
                hint="Declare the unit with its schema, measured or only counted.",
            )
        cells = self.units[unit]
        if isinstance(declared, Invariant):
            _, _, where = split_count(declared.count, cells, self.spine)
            matching(cells, where)
            return
        if isinstance(declared, StructuralZero):
            matching(cells, declared.where)
            return
        level_number(self.spine, declared.level)
        if isinstance(declared, Facilities):
            labels = [label[0] for label in cells.query(declared.attribute).labels()]
            counts = [c.count for c in self.constraints if isinstance(c, Invariant)]
            empty = {}
            for count in counts:
                level, query, _ = split_count(count, self.units[count.unit], self.spine)
                empty[value_key(count)] = np.zeros((self.spine.size(level), query.size), dtype=np.int64)
            facilities(declared, labels, self.spine, self.units, empty)
        else:
            cells.query(declared.query)

    def guarantee(self, prepared: object = None) -> Specification:
        """The specification; it does not depend on the data at all."""
        parts = [self._universe_specification(u) for u in self.universes]
        first = self.universes[0].unit
        for i, universe in enumerate(self.universes[1:], start=1):
            words = ONE_RECORD if universe.touched == 1 else TWO_RECORDS
            because = words.format(first=first, other=universe.unit.replace("_", " "))
            # A record that changes is replaced: one is removed and one is added.
            factor = universe.touched * (1 if universe.allocation.change == "replace-one" else 2)
            parts[i] = change_unit(parts[i], self._premetric(self.universes[0]), factor, because)
        parts += [release.specification for release in self.earlier]
        return compose(*parts, under=parts[0].flavor) if len(parts) > 1 else parts[0]

    def _universe_specification(self, universe: Universe) -> Specification:
        return Specification(
            domain=self._domain(),
            multiverse=self._multiverse(),
            input_premetric=self._premetric(universe),
            output_premetric=NormalisedRenyi(),
            budget=Budget.zcdp(rho_squared=universe.allocation.rho_squared),
            standing="proved",
        )

    def _premetric(self, universe: Universe) -> HammingUnordered | SymmetricDifference:
        kind = HammingUnordered if universe.allocation.change == "replace-one" else SymmetricDifference
        return kind(unit=universe.unit)

    def _multiverse(self) -> Invariants | Trivial:
        counts = tuple(c.count for c in self.constraints if isinstance(c, Invariant))
        return Invariants(invariants=counts, label="c_TDA") if counts else Trivial()

    def _domain(self) -> Domain:
        if self._given_domain is not None:
            return self._given_domain
        attributes = {name: Attribute(name=name) for name in self.spine.levels}
        for cells in self.units.values():
            attributes |= {a.name: a for a in cells.schema.attributes}
        units = ", ".join(unit.replace("_", " ") for unit in self.units)
        kept = " that keep every declared bound and structural zero" if self._bounded() else ""
        recodes = {r.name: r for cells in self.units.values() for r in cells.schema.recodes}
        return Domain(
            name="X",
            stage=self.stage,
            structure="multiset",
            meaning=f"all possible files of {units} records on a public geography" + kept,
            record_schema=Schema(
                attributes=tuple(attributes.values()),
                recodes=tuple(recodes.values()),
                nesting=tuple(itertools.pairwise(reversed(self.spine.levels))),
            ),
        )

    def _bounded(self) -> bool:
        return any(not isinstance(c, Invariant | EqualTo) for c in self.constraints)

    def _require_identified(self) -> None:
        """Refuse generalised least squares on measurements that do not determine every cell."""
        for universe in self.universes:
            if universe.settings.estimator == "gls":
                design = self.designs[universe.unit]
                names = dict.fromkeys(q for level in range(self.spine.depth) for q in design.queries(level))
                Information(design, Algebra.of(design.cells, [design.cells.query(name) for name in names]))

    def counts(self, data: object) -> dict[str, tuple[Histogram, ...]]:
        """Count the records of every unit by node and cell; refused where one lies outside."""
        frames = data if isinstance(data, Mapping) else {self.universes[0].unit: data}
        out = {}
        for unit, cells in self.units.items():
            if unit not in frames:
                raise InputError(
                    f"there is no table of {plural(unit)}",
                    field=f"data.{unit}",
                    expected="one table for every unit of the plan",
                    hint="Pass a mapping from unit to table.",
                )
            frame = as_polars(frames[unit], f"data.{unit}")
            out[unit] = levels_of(
                count_cells(frame, cells.schema, self.spine, self.spine.levels[-1]), self.spine
            )
        return out

    def public(self, invariants: Values) -> Public:
        """What estimation reads besides the measurements; refused where the constraints cannot hold."""
        for declared in self.constraints:
            if isinstance(declared, Invariant) and value_key(declared.count) not in invariants:
                raise InputError(
                    f"the values of an invariant are missing: {declared.count.sentence()}",
                    field="invariants",
                    expected="the values of every declared invariant",
                    hint="Compute them with this plan, or read the published ones.",
                )
        return Public(invariants, self._bounds(dict(invariants) | self._published(), self.constraints))

    def _bounds(self, values: Values, declared: Sequence[Declared]) -> dict[str, Bounds]:
        return {
            u.unit: Bounds(self.units[u.unit], self.spine, u.unit, declared, values, self.units)
            for u in self.universes
        }

    def _published(self) -> dict[str, NDArray[np.int64]]:
        """Tables of earlier releases that constraints name."""
        out = {}
        known = {release.name: release for release in self.earlier}
        for declared in self.constraints:
            if not isinstance(declared, EqualTo):
                continue
            if declared.release not in known:
                raise UnknownName(
                    f"a constraint names the release {declared.release}, which is not at hand",
                    field="constraints.equal_to.release",
                    expected="one of " + (", ".join(known) or "no release"),
                    hint="Hand the earlier release over, with its specification.",
                )
            tables = known[declared.release].estimates
            if declared.unit == tables.unit:
                own = self.units[declared.unit].query(declared.query)
                out[earlier_key(declared.release, declared.level, own.name)] = _published_table(
                    tables, declared.level, own
                )
        return out

    def room(self, prepared: Prepared) -> int:
        """About how many bytes measurements, microdata and documents take."""
        measured = sum(
            design.measured[level].size * design.width(level) * 8
            for design in self.designs.values()
            for level in range(self.spine.depth)
        )
        records = sum(int(levels[0].counts.sum()) for levels in prepared.counts.values())
        return measured + records * (8 + self.spine.depth) + (16 << 20)

    def prepare(self, dataset: object) -> Prepared:
        """Count the data and read the invariants; whatever can be refused is refused here."""
        self.guarantee()
        self._require_identified()
        counts = self.counts(dataset)
        public = self.public(invariant_values(self.constraints, self.units, self.spine, counts))
        limits = public.bounds
        own = [c for c in self.constraints if not isinstance(c, EqualTo)]
        if len(own) < len(self.constraints):
            limits = self._bounds(public.invariants, own)
        for unit, bounds in limits.items():
            bounds.check(counts[unit])
        return Prepared(counts, limits, public)

    def draw(self, prepared: Prepared, random: Source | None = None, folder: Path | None = None) -> Noisy:
        """Noisy measurements of every universe, in memory or in one subfolder each; fresh at every call."""
        require_prepared(prepared, Prepared)
        source = RandomSource() if random is None else random.spawn()
        return Noisy(
            {
                unit: measure(
                    design,
                    prepared.counts[unit],
                    source.child(number),
                    None if folder is None else folder / slug(unit),
                )
                for number, (unit, design) in enumerate(self.designs.items())
            }
        )

    def recall(self, folder: Path) -> Noisy:
        """Measurements that were drawn before, from their files."""
        return Noisy({unit: Measurements.read(d, folder / slug(unit)) for unit, d in self.designs.items()})

    def finish(self, primitive: Noisy, public: Public, progress: Progress | None = None) -> Release:
        """Estimate from measurements and invariants alone."""
        self._require_complete(primitive.measurements)
        products = {}
        for universe in self.universes:
            unit, bounds = universe.unit, public.bounds[universe.unit]
            levels, effort = estimate(primitive.measurements[unit], bounds, universe.settings, progress)
            bounds.check(levels)
            products[unit] = Estimates(unit, self.units[unit], self.spine, levels, effort)
        return Release(
            products={MEASUREMENTS: primitive.measurements, **products},
            specification=self.guarantee(),
            uncertainty={MEASUREMENTS: NOISE, **dict.fromkeys(products, ESTIMATE)},
            reason=trial(*([] if primitive.publishable else [INSECURE])),
        )

    def _require_complete(self, measurements: Mapping[str, Measurements]) -> None:
        """Refuse measurements of another design."""
        for unit, design in self.designs.items():
            if unit not in measurements:
                raise InputError(
                    f"there are no measurements of {plural(unit)}",
                    field=f"measurements.{unit}",
                    expected="measurements of every universe",
                    hint="Hand over what was measured with this plan.",
                )
            made_for = measurements[unit].design
            if made_for is not design and made_for.digest != design.digest:
                raise InputError(
                    f"the measurements of {plural(unit)} were made for another design",
                    field=f"measurements.{unit}",
                    expected="the same schema, geography and budget",
                    hint="Use the plan that they were made with.",
                )

    def divergence(self, prepared: Prepared, other: Prepared) -> Exact:
        """D_NoR between the measurements of two data sets, exactly: what the pair demands of the budget."""
        squares = (
            squared_divergence(d, prepared.counts[unit], other.counts[unit])
            for unit, d in self.designs.items()
        )
        return Exact.sqrt(sum(squares, Fraction(0)))

    def assess(
        self, primitive: Noisy, prepared: Prepared, made: Release | None = None
    ) -> dict[str, Accuracy]:
        """Errors of every universe against the truth: confidential."""
        made = self.finish(primitive, prepared.public) if made is None else made
        return {
            u.unit: accuracy(prepared.counts[u.unit], made.products[u.unit], u.allocation)
            for u in self.universes
        }


def _published_table(earlier: Estimates, level: str, query: Query) -> NDArray[np.int64]:
    """The counts of an earlier release in the order of our own query."""
    theirs = earlier.cells.query(" * ".join(query.parts) if query.parts else "total")
    places = [theirs.parts.index(part) for part in query.parts]
    position = {tuple(str(label[i]) for i in places): n for n, label in enumerate(theirs.labels())}
    wanted = [tuple(map(str, label)) for label in query.labels()]
    if sorted(position) != sorted(wanted):
        raise InputError(
            f"the earlier release has other levels of {query.name}",
            field="constraints.equal_to.query",
            expected="the same levels in both schemas",
            hint="Declare a recode with the earlier levels.",
        )
    depth = level_number(earlier.spine, level)
    counts = earlier.levels[depth].grouped(theirs.groups, theirs.size)
    return counts[:, [position[label] for label in wanted]]

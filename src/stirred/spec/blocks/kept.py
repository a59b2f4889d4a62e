"""What the invariants of a universe keep: the number of records, or whole records.

A count of all units fixes their number. Where the attributes that invariants fix (``Declared.kept``), with
all that these determine, are the whole record, a record can be replaced by none but itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stirred.spec.blocks.domain import Domain
from stirred.spec.blocks.invariant import Declared


@dataclass(frozen=True)
class Kept:
    """Invariants on a domain, or on an unknown one; ``attributes`` are all that is read of a record."""

    invariants: tuple[Declared, ...]
    domain: Domain | None
    attributes: tuple[str, ...] | None = None

    def under(self, *invariants: Declared) -> Kept:
        """The same under other invariants."""
        return replace(self, invariants=invariants)

    def total(self, unit: str) -> bool:
        """Whether the number of records of the unit is fixed."""
        return any(i.is_margin and unit in i.units for i in self.invariants)

    def record(self, unit: str) -> bool:
        """Whether one replaced record that keeps the invariants is the same record."""
        if self.domain is None or not self.domain.holds_records:
            return False
        schema = self.domain.obeyed_schema
        assert schema is not None
        fixed = {name for i in self.invariants if unit in i.units for name in i.kept}
        wanted = schema.names if self.attributes is None else self.attributes
        return set(wanted) <= schema.closure(fixed)

"""A storage in memory: the stand-in for a server database, and quick for property tests."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from stirred.ledger import Storage, Transaction
from stirred.ledger.chain import Row
from stirred.ledger.seal import Seal
from stirred.ledger.storage import nothing


class MemoryStorage(Storage):
    def __init__(self) -> None:
        self.kept: list[Row] = []
        self.people: dict[int, set[bytes]] = {}
        self.seals: list[Seal] = []

    @contextlib.contextmanager
    def writing(
        self, soon: Callable[[], None] = nothing, afterwards: Callable[[], None] = nothing
    ) -> Iterator[Transaction]:
        people = {spend: set(tags) for spend, tags in self.people.items()}
        work = _Work(list(self.kept), people, list(self.seals))
        yield work
        self.kept, self.people, self.seals = work.kept, work.people, work.seals
        afterwards()

    @contextlib.contextmanager
    def reading(self, *, wait: bool = True) -> Iterator[Transaction]:
        yield _Work(self.kept, self.people, self.seals)


class _Work(Transaction):
    def __init__(self, kept: list[Row], people: dict[int, set[bytes]], seals: list[Seal]) -> None:
        self.kept, self.people, self.seals = kept, people, seals

    def rows(self, after: int = -1) -> Iterator[Row]:
        return iter([row for row in self.kept if row.sequence > after])

    def append(self, row: Row) -> None:
        assert row.sequence == len(self.kept)
        self.kept.append(row)

    def add_tags(self, spend: int, tags: Iterable[bytes]) -> None:
        self.people.setdefault(spend, set()).update(tags)

    def tags(self, spend: int) -> Iterator[bytes]:
        return iter(sorted(self.people.get(spend, ())))

    def tagged(self) -> frozenset[int]:
        return frozenset(self.people)

    def crowd(self, limit: int) -> int:
        counts = Counter(tag for tags in self.people.values() for tag in tags)
        return sum(count > limit for count in counts.values())

    def keep_sealed(self, seal: Seal) -> None:
        self.seals.append(seal)

    def sealed(self) -> Iterator[Seal]:
        return iter(sorted(self.seals))

    def faults(self) -> tuple[str, ...]:
        return ()

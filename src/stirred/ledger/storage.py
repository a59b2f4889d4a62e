"""Where the events are kept: the few things that a ledger asks of a database.

Guarantee (of whatever fills this interface)
    Within ``writing`` there is one writer at a time, who sees everything committed before; on leaving the
    block all of it is kept, durably, or, after an exception or a crash, none of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager

from stirred.ledger.chain import Row
from stirred.ledger.seal import Seal


def nothing() -> None:
    """What is done before and after a transaction unless something is asked for."""


class Transaction(ABC):
    """A consistent view of the ledger, and, when writing, the right to append to it."""

    @abstractmethod
    def rows(self, after: int = -1) -> Iterator[Row]:
        """The entries behind a sequence number, in order."""

    @abstractmethod
    def append(self, row: Row) -> None:
        """Add an entry; one with the same sequence number must fail."""

    @abstractmethod
    def add_tags(self, spend: int, tags: Iterable[bytes]) -> None:
        """Add the salted ids of the participants of a release."""

    @abstractmethod
    def tags(self, spend: int) -> Iterator[bytes]:
        """The salted ids of a release, in order of their bytes."""

    @abstractmethod
    def tagged(self) -> frozenset[int]:
        """The releases that have participants."""

    @abstractmethod
    def crowd(self, limit: int) -> int:
        """How many salted ids belong to more releases than the limit."""

    @abstractmethod
    def keep_sealed(self, seal: Seal) -> None:
        """Add what is kept beside an event and never exported."""

    @abstractmethod
    def sealed(self) -> Iterator[Seal]:
        """Everything that is kept beside the events, in their order."""

    @abstractmethod
    def faults(self) -> tuple[str, ...]:
        """What the database itself finds wrong with its files."""


class Storage(ABC):
    """A database of entries. It must be possible to copy it and to hand it to another process."""

    @abstractmethod
    def writing(
        self, soon: Callable[[], None] = nothing, afterwards: Callable[[], None] = nothing
    ) -> AbstractContextManager[Transaction]:
        """A transaction with the only right to write; committed on leaving, rolled back on an exception.

        Where writers stand in line, ``soon`` may be called when it is nearly one's turn, any number of times.
        ``afterwards`` is called once all of it is kept, in a line before the next one's turn.
        """

    @abstractmethod
    def reading(self, *, wait: bool = True) -> AbstractContextManager[Transaction]:
        """A transaction that only reads; without waiting, ``LedgerBusy`` where it would have to wait."""

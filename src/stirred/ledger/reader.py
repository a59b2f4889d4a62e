"""Reading a ledger: what was spent, what is left, who may do what, and whether it is what it was.

Guarantee
    Every answer is drawn up from the whole chain as it stands. A broken chain, a chain that ends before its
    head file, and a missing head file are refused; only ``verify`` looks at such a ledger, and says why.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from stirred.errors import InputError, StirredError
from stirred.ledger import verification
from stirred.ledger.account import Spend
from stirred.ledger.anchor import BEGINNING, HeadFile
from stirred.ledger.books import Books
from stirred.ledger.chain import Entry, Finding, Head, Row, follow
from stirred.ledger.export import Format, export
from stirred.ledger.key import Key, KeyFile
from stirred.ledger.refusals import TamperedLedger
from stirred.ledger.roles import Role
from stirred.ledger.seal import Drawing, drawing_of
from stirred.ledger.statement import Statement
from stirred.ledger.storage import Storage, Transaction
from stirred.ledger.verification import Verification
from stirred.spec import Specification


class _News(NamedTuple):
    """Rows as they are stored, the head that the head file keeps, and the row in its place."""

    rows: list[Row]
    kept: Head | None
    witness: Row | None


class LedgerReader:
    """The books of a storage, kept up to date with what others write to it."""

    def __init__(
        self,
        storage: Storage,
        *,
        anchor: HeadFile | None = None,
        key: KeyFile | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self._storage, self._anchor, self._key, self._clock = storage, anchor, key, clock
        self._books = Books()
        self._lock = threading.Lock()

    def drawing(self, spend: Spend) -> Drawing | None:
        """Where a release was paid to be drawn, and from which data; nothing where that was not said."""
        self._read()
        with self._storage.reading() as transaction:
            return self._drawing(transaction, self._caught_up(transaction), spend)

    def _drawing(self, transaction: Transaction, books: Books, spend: Spend) -> Drawing | None:
        """What was sealed with a spend; a seal that is missing or was changed is refused."""
        key = self._key_of(books.key)
        if key is not None:
            verification.require_seals(transaction, books, key)
        return drawing_of(transaction.sealed(), spend.sequence)

    def remaining(
        self, dataset: str, *, analyst: str | None = None, period: str | None = None
    ) -> Specification:
        """What is left of a data set, of an analyst's allocation or of a period, with its flavor."""
        account = self._read().account(dataset)
        return account.remaining(analyst, period).within(account.flavor)

    def total(self, dataset: str, *, period: str | None = None, unit: str | None = None) -> Specification:
        """The composed guarantee of all releases so far, of one period, or of one protection unit.

        By unit, releases are composed in the flavor in which they were made, before any group factor.
        """
        account = self._read().account(dataset)
        if unit is None:
            return account.composed(period)
        units = account.by_unit(period)
        if unit not in units:
            raise InputError(
                f"no release of {dataset} protects this unit",
                field="unit",
                expected=f"one of: {', '.join(units) or 'none so far'}",
                hint="Units are named by the input premetrics of the releases.",
            )
        return units[unit]

    def statement(self, dataset: str) -> Statement:
        return Statement.of(self._read().account(dataset))

    def datasets(self) -> tuple[str, ...]:
        """The data sets, in the order in which they were opened."""
        return tuple(self._read().accounts)

    def people(self) -> dict[str, tuple[Role, ...]]:
        return dict(self._read().people)

    def head(self) -> Head:
        """The end of the chain: keep it elsewhere, and the ledger cannot be cut short unnoticed."""
        head = self._read().head
        if head is None:
            raise _unfounded()
        return head

    def events(self) -> tuple[Entry, ...]:
        """All entries, oldest first; a broken chain is refused."""
        with self._storage.reading() as transaction:
            news = self._news(transaction, None)
        entries = tuple(follow(news.rows))
        last = entries[-1].row() if entries else None
        self._require_anchored(news, None if last is None else Head(last.sequence, last.hash))
        return entries

    def verify(self, anchor: Head | None = None) -> Verification:
        """Recompute everything and name what is wrong; see ``stirred.ledger.verification``."""
        anchors = [] if anchor is None else [("anchor given", anchor)]
        faults: list[Finding] = []
        with self._storage.reading() as transaction:
            # The head file is read inside the transaction: it may be behind the ledger, never ahead of it.
            try:
                kept = None if self._anchor is None else self._anchor.read()
                anchors += [] if kept is None else [("head file", kept)]
                if self._anchor is not None and kept is None and anchor is None:
                    faults.append(Finding(None, "anchor", _headless(self._anchor).problem))
            except InputError as error:
                faults.append(Finding(None, "anchor", error.problem))
            key, note = self._key_at_hand()
            return verification.verify(transaction, anchors, faults, key=key, notes=note)

    def export(self, form: Format = "json") -> str:
        """The events as text: ``json``, ``jsonl``, ``csv``, or only the ``head``."""
        entries = self.events()
        if not entries:
            raise _unfounded()
        return export(entries, form)

    def _read(self, *, wait: bool = True) -> Books:
        """The books as they stand. Writers wait while somebody reads, so nothing is computed meanwhile."""
        before = self._books
        with self._storage.reading(wait=wait) as transaction:
            news = self._news(transaction, before.head)
        return self._kept(self._after(before, news))

    def _caught_up(self, transaction: Transaction) -> Books:
        """The books after all that others have written since, within a transaction."""
        before = self._books
        return self._after(before, self._news(transaction, before.head))

    def _kept(self, books: Books) -> Books:
        """Keep the books in memory, if no other thread has newer ones."""
        with self._lock:
            if _length(books) >= _length(self._books):
                self._books = books
        return books

    def _news(self, transaction: Transaction, head: Head | None) -> _News:
        """What is stored from a head on, and what the head file says meanwhile; nothing is judged yet."""
        rows = list(transaction.rows(-1 if head is None else head.sequence - 1))
        if self._anchor is None:
            return _News(rows, None, None)
        kept = self._anchor.read()
        if kept is None or kept == BEGINNING:
            return _News(rows, kept, None)
        if head is None or head.sequence <= kept.sequence:
            return _News(rows, kept, next((row for row in rows if row.sequence >= kept.sequence), None))
        return _News(rows, kept, next(transaction.rows(kept.sequence - 1), None))

    def _after(self, books: Books, news: _News) -> Books:
        """The books after the news; a broken chain is refused."""
        rows = iter(news.rows)
        if books.head is not None:
            last = next(rows, None)
            if last is None or Head(last.sequence, last.hash) != books.head:
                raise replaced(books.head, "this process has read it before")
        for entry in follow(rows, books.head):
            books = books.after(entry)
        self._require_anchored(news, books.head)
        return books

    def _require_anchored(self, news: _News, head: Head | None) -> None:
        """Refuse a ledger that ends before its head file: an older copy would give back what was spent."""
        if self._anchor is None:
            return
        if news.kept is None:
            raise _headless(self._anchor)
        if news.kept in (head, BEGINNING):
            return
        row = news.witness
        if row is None or Head(row.sequence, row.hash) != news.kept:
            raise replaced(news.kept, "the head file knows it")

    def derived_key(self, purpose: str) -> bytes:
        """A secret of this ledger for one purpose, such as fingerprints of data; never exported."""
        return self._secret().derived(purpose)

    def _key_at_hand(self) -> tuple[Key | None, tuple[str, ...]]:
        """The key for a verification, or a note that it is not there."""
        try:
            return self._secret(), ()
        except StirredError:
            return None, ("what is sealed was not checked: the key is not at hand, or the chain is broken",)

    def _secret(self) -> Key:
        found = self._key_of(self._read().key)
        if found is None:
            raise InputError(
                "this ledger has no key",
                field="key",
                expected="a ledger made with a key file",
                hint="Ledgers made with Ledger.create have one: it tracks participation and seals releases.",
            )
        return found

    def _key_of(self, fingerprint: str | None) -> Key | None:
        """The key with a fingerprint; nothing where the ledger has none, refused where it is another one."""
        if self._key is None or fingerprint is None:
            return None
        key = self._key.read()
        if key.fingerprint != fingerprint:
            raise InputError(
                f"the key file {self._key.path.name} is not the key of this ledger",
                field="key",
                expected="the key file that was made with the ledger",
                hint="Put the right file in its place: with another key a person would count as new.",
            )
        return key


def _length(books: Books) -> int:
    return 0 if books.head is None else books.head.sequence + 1


def _headless(anchor: HeadFile) -> TamperedLedger:
    return TamperedLedger(
        f"the head file {anchor.path.name} is missing",
        field="head",
        expected="the head file that lies beside the ledger: without it a cut end would not be noticed",
        hint="Put it back, or renew it from the newest head that a report prints: "
        "stirred ledger renew-head LEDGER SEQUENCE:HASH --by OWNER.",
    )


def replaced(head: Head, witness: str) -> TamperedLedger:
    """The refusal of a ledger that lacks an event that somebody knows."""
    return TamperedLedger(
        f"event {head.sequence} is missing or is not what it was: {witness}",
        field="ledger",
        expected="every event that was ever recorded",
        hint="An older copy of a ledger forgets what was spent. Run `stirred ledger verify`, and find the "
        "right one.",
    )


def _unfounded() -> InputError:
    return InputError(
        "the ledger is empty",
        field="ledger",
        expected="a ledger with its founding event",
        hint="Make it with Ledger.create.",
    )

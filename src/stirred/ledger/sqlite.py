"""A ledger in one SQLite file.

Guarantee
    A transaction that returned is on the disk: rollback journal, synchronous=EXTRA (the file, its journal
    and the folder are flushed), so that neither kill -9 nor a power cut takes it back. A transaction
    that did not return is either there as a whole or not at all. Writers wait for each other, in the order in
    which they came (``stirred.ledger.line``).
Assumes
    A local file system with working locks, and a disk that flushes when told to. There is one file
    beside its folder's journal while writing: no write-ahead log that a copy could leave behind.

A connection lives as long as one transaction: a ledger can be copied, pickled, forked and used from
threads without sharing a handle.
"""

from __future__ import annotations

import contextlib
import copy
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from stirred.errors import InputError, NewerSchema, StirredError
from stirred.ledger.chain import Row
from stirred.ledger.line import STANDSTILL, alone, in_line
from stirred.ledger.refusals import LedgerBusy, unmade
from stirred.ledger.seal import Seal
from stirred.ledger.storage import Storage, Transaction, nothing

APPLICATION = 0x57198ED1
SCHEMA_VERSION = 2
PATIENCE = 60.0

_SCHEMA = (
    "CREATE TABLE event (sequence INTEGER PRIMARY KEY, body TEXT NOT NULL, hash TEXT NOT NULL UNIQUE)",
    "CREATE TABLE tag (spend INTEGER NOT NULL, tag BLOB NOT NULL, PRIMARY KEY (spend, tag)) WITHOUT ROWID",
    "CREATE INDEX tag_by_id ON tag (tag)",
    "CREATE TABLE sealed (sequence INTEGER PRIMARY KEY, body TEXT NOT NULL, seal TEXT NOT NULL)",
    "CREATE TRIGGER event_edited BEFORE UPDATE ON event "
    "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    "CREATE TRIGGER event_deleted BEFORE DELETE ON event "
    "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)


class SqliteStorage(Storage):
    """Entries in a SQLite file, made by ``SqliteStorage.create``.

    ``patience`` is how many seconds to wait for another writer; an auditor opens the file ``read_only``.
    """

    def __init__(self, path: Path | str, *, patience: float = PATIENCE, read_only: bool = False) -> None:
        self.path = Path(path).resolve()
        self.patience = self._left = patience
        self.read_only = read_only

    @classmethod
    def create(cls, path: Path | str, *, patience: float = PATIENCE) -> SqliteStorage:
        """Make the file, readable by its owner alone; an existing ledger is refused."""
        storage = cls(path, patience=patience)
        try:
            storage.path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.close(os.open(storage.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except OSError as error:
            raise unmade(f"the ledger {storage.path.name} cannot be made", error) from None
        with storage._transaction("BEGIN IMMEDIATE") as connection:
            if not storage._number(connection, "SELECT COUNT(*) FROM sqlite_schema"):
                for statement in _SCHEMA:
                    connection.execute(statement)
            elif not storage._unfounded(connection):
                raise InputError(
                    f"{storage.path.name} exists already",
                    field="path",
                    expected="a file that does not exist",
                    hint="Open it with Ledger.open, or choose another name: a ledger is never overwritten.",
                )
        return storage

    def _unfounded(self, connection: sqlite3.Connection) -> bool:
        """Whether the file is a ledger whose making was interrupted before its first event."""
        if self._number(connection, "PRAGMA application_id") != APPLICATION:
            return False
        return self._number(connection, "SELECT COUNT(*) FROM event") == 0

    @contextlib.contextmanager
    def writing(
        self, soon: Callable[[], None] = nothing, afterwards: Callable[[], None] = nothing
    ) -> Iterator[Transaction]:
        """One writer at a time: the lock is taken at the beginning, not at the first write.

        Writers are served in the order in which they come. The database is not touched before one's turn:
        while others write, even a look at it has to wait, without any order.
        """
        self._require_file()
        with self._in_line(soon) as left:
            with self._within(left)._opened("BEGIN IMMEDIATE") as transaction:
                yield transaction
            # Whoever is stopped here is passed by others after a while: it must not come back with old news.
            with alone(self._line, STANDSTILL) as held:
                if held:
                    afterwards()

    def reading(self, *, wait: bool = True) -> AbstractContextManager[Transaction]:
        return (self if wait else self._within(0.0))._opened("BEGIN")

    def _within(self, left: float) -> SqliteStorage:
        """The same storage with less patience left."""
        other = copy.copy(self)
        other._left = left
        return other

    @contextlib.contextmanager
    def _opened(self, begin: str) -> Iterator[Transaction]:
        with self._transaction(begin) as connection:
            self._require_ledger(connection)
            yield _SqliteTransaction(connection)

    def _in_line(self, soon: Callable[[], None]) -> AbstractContextManager[float]:
        """The place among the writers; whoever may not write needs none to be told so."""
        if self.read_only:
            return contextlib.nullcontext(self.patience)
        return in_line(self._line, self.patience, soon)

    @property
    def _line(self) -> Path:
        return self.path.with_name(f".{self.path.name}.line")

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        try:
            connection = self._connect()
        except sqlite3.Error as error:
            raise self._translated(error) from None
        try:
            connection.execute(begin)
            yield connection
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._translated(error) from None
        finally:
            # Closing without COMMIT rolls back, whatever was raised.
            connection.close()

    def _require_file(self) -> None:
        if not os.path.isfile(self.path):
            raise InputError(
                f"there is no ledger {self.path.name}",
                field="path",
                expected="a file made by Ledger.create",
                hint="Check the path; a missing ledger is never made on the way.",
            )

    def _connect(self) -> sqlite3.Connection:
        self._require_file()
        mode = "ro" if self.read_only else "rw"
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?mode={mode}", uri=True, timeout=self._left, isolation_level=None
        )
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")
        return connection

    def _require_ledger(self, connection: sqlite3.Connection) -> None:
        version = self._number(connection, "PRAGMA user_version")
        if self._number(connection, "PRAGMA application_id") != APPLICATION:
            raise self._not_a_ledger()
        newer = version > SCHEMA_VERSION
        if version != SCHEMA_VERSION:
            raise (NewerSchema if newer else InputError)(
                f"the ledger has schema version {version}; this stirred writes {SCHEMA_VERSION}",
                field="schema_version",
                expected=f"{SCHEMA_VERSION}",
                hint="Upgrade stirred; nothing is written to a newer ledger."
                if newer
                else "No release of stirred wrote this version: restore the ledger from a copy.",
            )

    @staticmethod
    def _number(connection: sqlite3.Connection, query: str) -> int:
        return int(connection.execute(query).fetchone()[0])

    def _not_a_ledger(self) -> InputError:
        return InputError(
            f"{self.path.name} is not a ledger",
            field="path",
            expected="a file made by Ledger.create",
            hint="Check the path.",
        )

    def _translated(self, error: sqlite3.Error) -> StirredError:
        """What the database said, as what to do; the ledger is as it was before the transaction."""
        text, name = str(error), self.path.name
        if "not a database" in text:
            return self._not_a_ledger()
        if "locked" in text or "busy" in text:
            return LedgerBusy(
                f"another process holds the ledger {name}",
                field="ledger",
                expected=f"the ledger within {self.patience:g} seconds",
                hint="Try again; if no process is running, look for one that hangs.",
            )
        said = ((f"{problem} ({name})", hint) for words, problem, hint in _MESSAGES if words in text)
        unknown = f"the ledger {name} cannot be read or written", "Run `stirred ledger verify`."
        problem, hint = next(said, unknown)
        expected = "a ledger file and its folder, with room and permission to write"
        return InputError(problem, field="ledger", expected=expected, hint=f"{hint} {_TRUE}")


_TRUE = "Nothing was recorded, and what was recorded before is kept."
_MESSAGES = (
    ("disk is full", "there is no room to write the ledger", "Make room and try again."),
    ("readonly", "the ledger is read-only", "Give permission to write the file and its folder."),
    ("unable to open", "the ledger cannot be opened for writing", "Give permission to its folder."),
    ("append-only", "a ledger is append-only", "Record a new event instead."),
    ("malformed", "the ledger file is damaged", "Restore it from a copy."),
    ("I/O error", "the disk failed", "Check the disk."),
)


class _SqliteTransaction(Transaction):
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, after: int = -1) -> Iterator[Row]:
        query = "SELECT sequence, body, hash FROM event WHERE sequence > ? ORDER BY sequence"
        for sequence, body, name in self._connection.execute(query, (after,)):
            yield Row(sequence, str(body), str(name))

    def append(self, row: Row) -> None:
        self._connection.execute("INSERT INTO event (sequence, body, hash) VALUES (?, ?, ?)", row)

    def add_tags(self, spend: int, tags: Iterable[bytes]) -> None:
        rows = ((spend, tag) for tag in tags)
        self._connection.executemany("INSERT INTO tag (spend, tag) VALUES (?, ?)", rows)

    def tags(self, spend: int) -> Iterator[bytes]:
        for (tag,) in self._connection.execute("SELECT tag FROM tag WHERE spend = ? ORDER BY tag", (spend,)):
            yield bytes(tag)

    def tagged(self) -> frozenset[int]:
        return frozenset(spend for (spend,) in self._connection.execute("SELECT DISTINCT spend FROM tag"))

    def crowd(self, limit: int) -> int:
        query = "SELECT COUNT(*) FROM (SELECT 1 FROM tag GROUP BY tag HAVING COUNT(*) > ?)"
        return int(self._connection.execute(query, (limit,)).fetchone()[0])

    def keep_sealed(self, seal: Seal) -> None:
        self._connection.execute("INSERT INTO sealed (sequence, body, seal) VALUES (?, ?, ?)", seal)

    def sealed(self) -> Iterator[Seal]:
        for sequence, body, seal in self._connection.execute("SELECT * FROM sealed ORDER BY sequence"):
            yield Seal(sequence, str(body), str(seal))

    def faults(self) -> tuple[str, ...]:
        found = [str(line) for (line,) in self._connection.execute("PRAGMA integrity_check")]
        return () if found == ["ok"] else ("the database finds its own file damaged",)

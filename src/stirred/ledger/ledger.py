"""The ledger: what happened to which data, and what is left.

Guarantee
    Every act is one event in one transaction: it is decided on the whole history, appended and made durable
    before the call returns. Spend is recorded before the mechanism runs, and is never given back.
Assumes
    Whoever makes a release asks the ledger first. A mechanism that runs without spending is not seen.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stirred.errors import InputError, Refusal, StirredError
from stirred.ledger import verification
from stirred.ledger.account import Spend
from stirred.ledger.allocation import Division
from stirred.ledger.amount import Amount
from stirred.ledger.anchor import HeadFile
from stirred.ledger.books import Books
from stirred.ledger.chain import NOTHING, Entry, Finding, Head, follow
from stirred.ledger.events import (
    Allocated,
    Appointed,
    Event,
    Finished,
    Founded,
    Group,
    NonPrivate,
    Opened,
    Overridden,
    Participated,
    Resumed,
    Sample,
    Share,
    Spent,
    Withdrawn,
    checked,
    stored,
)
from stirred.ledger.export import Format, export
from stirred.ledger.participation import Key, KeyFile, Participation, tags_digest
from stirred.ledger.refusals import TamperedLedger, wrong
from stirred.ledger.roles import ROLES, Role
from stirred.ledger.sqlite import PATIENCE, SqliteStorage
from stirred.ledger.statement import Preview, Statement
from stirred.ledger.storage import Storage, Transaction
from stirred.ledger.verification import Verification
from stirred.spec.specification import Specification

Decide = Callable[[Books], Event]


class Ledger:
    """An append-only, hash-chained record of releases, with an account for every data set.

    Make one with ``Ledger.create`` and open it with ``Ledger.open``. A copy of a ledger is the same ledger:
    it holds a storage, not a balance.

    Examples
    --------
    >>> import tempfile
    >>> from stirred.spec import Budget, catalogue
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(f"{folder.name}/ledger.db", owner="Ada")
    >>> ledger.appoint("Ben", "curator", by="Ada")
    >>> ledger.open_dataset("census", catalogue.specification("pure-dp", Budget.epsilon(1)), by="Ada")
    >>> release = catalogue.specification("pure-dp", Budget.epsilon("0.1"))
    >>> spend = ledger.spend("census", release, plan_digest="0" * 64, by="Ben")
    >>> print(ledger.remaining("census"))
    ε-DP(X, {X}, d_Ham^r, D_Mult), ε = 0.9
    >>> folder.cleanup()
    """

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
        self._lock = threading.RLock()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_again, (self._storage, self._anchor, self._key, self._clock))

    @classmethod
    def create(cls, path: Path | str, *, owner: str, patience: float = PATIENCE) -> Ledger:
        """Found a ledger in a new file; beside it a key (``.key``) and a head (``.head``)."""
        checked(Founded(owner=owner))
        place = Path(path)
        storage = SqliteStorage.create(place, patience=patience)
        key = KeyFile(_beside(place, "key"))
        secret = key.make()
        ledger = cls(storage, anchor=HeadFile(_beside(place, "head")), key=key)
        ledger.found(owner, secret)
        return ledger

    @classmethod
    def open(cls, path: Path | str, *, patience: float = PATIENCE, read_only: bool = False) -> Ledger:
        """Open a ledger; a missing file, another file or another schema is refused."""
        place = Path(path)
        storage = SqliteStorage(place, patience=patience, read_only=read_only)
        with storage.reading():
            pass
        return cls(storage, anchor=HeadFile(_beside(place, "head")), key=KeyFile(_beside(place, "key")))

    def found(self, owner: str, key: Key | None = None) -> None:
        """The first event of a new storage."""
        self._record(Founded(owner=owner, key=None if key is None else key.fingerprint), owner)

    def appoint(self, person: str, *roles: Role, by: str) -> None:
        """Give a person roles, in place of those held before; none ends them. Owners appoint."""
        unknown = [role for role in roles if role not in ROLES]
        if unknown:
            raise wrong(
                "this role is not known",
                field="roles",
                expected=" or ".join(ROLES),
                hint="See the page on the ledger for who may do what.",
            )
        self._record(Appointed(person=person, roles=tuple(dict.fromkeys(roles))), by)

    def open_dataset(
        self, dataset: str, ceiling: Specification, *, by: str, each_period: Specification | None = None
    ) -> None:
        """Open a data set with its ceiling: a flavor and the total budget in it, for good. Owners open."""
        each = None if each_period is None else stored(each_period, "each_period")
        self._record(Opened(dataset=dataset, ceiling=stored(ceiling, "ceiling"), each_period=each), by)

    def spend(
        self,
        dataset: str,
        specification: Specification,
        plan_digest: str,
        *,
        by: str,
        analyst: str | None = None,
        period: str | None = None,
        fresh: bool = True,
        seed: str | None = None,
        sample: Sample | None = None,
        group: Group | None = None,
        once: bool = False,
    ) -> Spend:
        """Pay for a release, before it is made.

        Guarantee
            On return the spend is durable. It is refused, and nothing is recorded, unless the adaptive
            composition of all releases of the data set with this one is within the ceiling.

        Parameters
        ----------
        specification
            The guarantee of the mechanism, all five blocks.
        plan_digest
            SHA-256 of the frozen plan; only this plan can resume the release.
        by
            The curator, or the analyst on their own allocation.
        analyst
            Whose allocation pays; a curator may leave it out and draws on what is not allocated.
        period
            A label, needed where the data set has a ceiling for each period.
        fresh, seed
            Whether the randomness is fresh, and a digest of its seed; a repeated one is refused.
        sample
            A secret sample, if the specification is the guarantee given that sample.
        group
            How many units of the release one unit of the ceiling can be.
        once
            Refuse a plan that has been released already, by whichever process and however lately.
        """
        event = self._event(dataset, specification, plan_digest, analyst, period, fresh, seed, sample, group)

        def decided(books: Books) -> Event:
            if once and any(spend.plan == plan_digest for spend in books.account(dataset).spends.values()):
                raise Refusal(
                    "this plan has been released already, or is being released",
                    field="plan",
                    expected="a plan that was not run before",
                    hint="A second release of the same data costs again: write a new plan for it.",
                )
            return event

        entry = self._record(decided, by)
        return self._books.account(dataset).spend(entry.sequence)

    def preview(
        self,
        dataset: str,
        specification: Specification,
        *,
        analyst: str | None = None,
        period: str | None = None,
        fresh: bool = True,
        seed: str | None = None,
        sample: Sample | None = None,
        group: Group | None = None,
    ) -> Preview:
        """What a release would leave, for a dry run: nothing is spent, nothing is written."""
        event = self._event(dataset, specification, NOTHING, analyst, period, fresh, seed, sample, group)
        account = self._read().account(dataset)
        remaining = account.remaining().within(account.flavor)
        try:
            self._books.require_payable(event)
            after = account.charged(event)
        except StirredError as refusal:
            requested = getattr(refusal, "requested", None)
            return Preview(dataset, requested, remaining, None, account.tainted, refusal)
        requested = after.spent.amount().minus(account.spent.amount())
        left = after.remaining().within(account.flavor)
        return Preview(dataset, requested, remaining, left, account.tainted, None)

    def resume(self, dataset: str, plan_digest: str, *, by: str) -> Spend:
        """Take up an interrupted release with exactly the plan it was paid for; nothing is spent again.

        The run that held it before can no longer finish it: of two runs of one plan only the latest may
        publish.
        """

        def decide(books: Books) -> Event:
            spend = books.account(dataset).waiting(plan_digest)
            return Resumed(dataset=dataset, spend=spend.sequence, attempt=spend.attempt + 1)

        event = self._record(decide, by).event
        assert isinstance(event, Resumed)
        return self._books.account(dataset).spend(event.spend)

    def finish(self, spend: Spend, manifest_digest: str, *, by: str) -> Spend:
        """Mark a release as complete, with the digest of its manifest.

        Call it when the products are complete and before they are published: the ledger decides which of
        two runs may publish. Finishing again with the same manifest changes nothing.
        """
        known = self._read().account(spend.dataset).spend(spend.sequence)
        if (known.manifest, known.attempt) == (manifest_digest, spend.attempt):
            return known
        self._record(
            Finished(
                dataset=spend.dataset, spend=spend.sequence, attempt=spend.attempt, manifest=manifest_digest
            ),
            by,
        )
        return self._books.account(spend.dataset).spend(spend.sequence)

    def allocate(
        self, dataset: str, division: Division, *, by: str, of: Specification | None = None
    ) -> dict[str, Specification]:
        """Set budget aside for analysts: ``Equal``, ``Weighted`` or ``Accurate``. Allocators allocate.

        ``of`` is the amount to divide, by default everything that is neither spent nor set aside.
        """

        def decide(books: Books) -> Event:
            account = books.account(dataset)
            whole = account.unreserved() if of is None else account.priced(of)
            shares = division.shares(whole, account.flavor)
            return Allocated(
                dataset=dataset,
                rule=division.rule,
                shares=tuple(Share(analyst=name, amount=part.record()) for name, part in shares.items()),
            )

        event = self._record(decide, by).event
        assert isinstance(event, Allocated)
        flavor = self._books.account(dataset).flavor
        return {share.analyst: Amount.read(share.amount).within(flavor) for share in event.shares}

    def withdraw(self, dataset: str, analyst: str, *, by: str) -> None:
        """Return what an analyst has not spent to the data set. What is spent stays spent."""
        self._record(Withdrawn(dataset=dataset, analyst=analyst), by)

    def non_private_step(self, dataset: str, step: str, reason: str, *, by: str) -> None:
        """Record a step on the confidential data that no guarantee covers: it taints all that follows."""
        self._record(NonPrivate(dataset=dataset, step=step, reason=reason), by)

    def override(self, dataset: str, step: str, reason: str, *, by: str) -> None:
        """Record that an open step of the checklist was overridden. Owners override."""
        self._record(Overridden(dataset=dataset, step=step, reason=reason), by)

    def participate(self, spend: Spend, ids: Iterable[object], *, limit: int, by: str) -> Participation:
        """Record who took part in a release, by salted id, and count the persons in too many releases.

        The count is confidential, as are the ids: it is for the steward, not for publication.
        """
        if type(limit) is not int or limit < 1:
            raise wrong(
                "the limit is not a number of releases",
                field="limit",
                expected="a whole number of at least one",
                hint="A person who appears in more releases than this raises the alarm.",
            )
        tags = self._secret().tags(ids)
        event = Participated(dataset=spend.dataset, spend=spend.sequence, tags=tags_digest(tags))
        over = 0

        def keep(transaction: Transaction) -> None:
            nonlocal over
            transaction.add_tags(spend.sequence, tags)
            over = transaction.crowd(limit)

        self._record(event, by, keep)
        return Participation(limit, over)

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
            raise wrong(
                f"no release of {dataset} protects this unit",
                field="unit",
                expected=f"one of: {', '.join(units) or 'none so far'}",
                hint="Units are named by the input premetrics of the releases.",
            )
        return units[unit]

    def statement(self, dataset: str) -> Statement:
        """Everything about the account of a data set."""
        return Statement.of(self._read().account(dataset))

    def datasets(self) -> tuple[str, ...]:
        """The data sets, in the order in which they were opened."""
        return tuple(self._read().accounts)

    def people(self) -> dict[str, tuple[Role, ...]]:
        """Who holds which roles."""
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
            return tuple(follow(transaction.rows()))

    def verify(self, anchor: Head | None = None) -> Verification:
        """Recompute everything and name what is wrong; see ``stirred.ledger.verification``."""
        anchors = [] if anchor is None else [("anchor given", anchor)]
        faults: list[Finding] = []
        with self._storage.reading() as transaction:
            # The head file is read inside the transaction: it may be behind the ledger, never ahead of it.
            try:
                kept = None if self._anchor is None else self._anchor.read()
                anchors += [] if kept is None else [("head file", kept)]
            except InputError as error:
                faults.append(Finding(None, "anchor", error.problem))
            return verification.verify(transaction, anchors, faults)

    def export(self, form: Format = "json") -> str:
        """The events as text: ``json``, ``jsonl``, ``csv``, or only the ``head``."""
        entries = self.events()
        if not entries:
            raise _unfounded()
        return export(entries, form)

    def _event(
        self,
        dataset: str,
        specification: Specification,
        plan: str,
        analyst: str | None,
        period: str | None,
        fresh: bool,
        seed: str | None,
        sample: Sample | None,
        group: Group | None,
    ) -> Spent:
        return Spent(
            dataset=dataset,
            specification=stored(specification, "specification"),
            plan=plan,
            analyst=analyst,
            period=period,
            fresh=fresh,
            seed=seed,
            sample=sample,
            group=group,
        )

    def _record(
        self, event: Event | Decide, by: str, keep: Callable[[Transaction], None] | None = None
    ) -> Entry:
        """Decide, append and commit in one transaction; the state in memory moves only afterwards."""
        with self._lock:
            with self._storage.writing() as transaction:
                books = self._caught_up(transaction)
                chosen = event(books) if callable(event) else event
                after, entry = self._entered(books, checked(chosen), by)
                transaction.append(entry.row())
                if keep is not None:
                    keep(transaction)
            self._books = after
            if self._anchor is not None and after.head is not None:
                self._anchor.write(after.head)
            return entry

    def _entered(self, books: Books, event: Event, by: str) -> tuple[Books, Entry]:
        sequence, previous = (
            (0, NOTHING) if books.head is None else (books.head.sequence + 1, books.head.hash)
        )
        at = (self._clock() if self._clock else datetime.now(UTC)).astimezone(UTC)
        when = at.isoformat(timespec="microseconds")
        entry = Entry(sequence, previous, when, by, books.role(event, by), event)
        return books.after(entry), entry

    def _read(self) -> Books:
        with self._lock, self._storage.reading() as transaction:
            self._books = self._caught_up(transaction)
            return self._books

    def _caught_up(self, transaction: Transaction) -> Books:
        """The books after all that others have written since; a broken chain is refused."""
        books = self._books
        rows = transaction.rows(-1 if books.head is None else books.head.sequence - 1)
        if books.head is not None:
            last = next(rows, None)
            if last is None or Head(last.sequence, last.hash) != books.head:
                raise _replaced(books.head, "this process has read it before")
        for entry in follow(rows, books.head):
            books = books.after(entry)
        self._require_anchored(transaction, books.head)
        return books

    def _require_anchored(self, transaction: Transaction, head: Head | None) -> None:
        """Refuse a ledger that ends before its head file: an older copy would give back what was spent."""
        kept = None if self._anchor is None else self._anchor.read()
        if kept is None or kept == head:
            return
        row = next(transaction.rows(kept.sequence - 1), None)
        if row is None or Head(row.sequence, row.hash) != kept:
            raise _replaced(kept, "the head file knows it")

    def _secret(self) -> Key:
        fingerprint = self._read().key
        if self._key is None or fingerprint is None:
            raise wrong(
                "this ledger has no key",
                field="key",
                expected="a ledger made with a key file",
                hint="Participation is tracked by ledgers made with Ledger.create.",
            )
        key = self._key.read()
        if key.fingerprint != fingerprint:
            raise wrong(
                f"the key file {self._key.path.name} is not the key of this ledger",
                field="key",
                expected="the key file that was made with the ledger",
                hint="Put the right file in its place: with another key a person would count as new.",
            )
        return key


def _again(*parts: Any) -> Ledger:
    storage, anchor, key, clock = parts
    return Ledger(storage, anchor=anchor, key=key, clock=clock)


def _beside(path: Path, ending: str) -> Path:
    return path.absolute().with_name(f"{path.name}.{ending}")


def _replaced(head: Head, witness: str) -> TamperedLedger:
    return TamperedLedger(
        f"event {head.sequence} is missing or is not what it was: {witness}",
        field="ledger",
        expected="every event that was ever recorded",
        hint="An older copy of a ledger forgets what was spent. Run `stirred ledger verify`, and find the "
        "right one.",
    )


def _unfounded() -> InputError:
    return wrong(
        "the ledger is empty",
        field="ledger",
        expected="a ledger with its founding event",
        hint="Make it with Ledger.create.",
    )

"""The ledger: what happened to which data, and what is left.

Guarantee
    Every act is one event in one transaction: it is decided on the whole history, appended and made durable
    before the call returns. Spend is recorded before the mechanism runs, and is never given back.
Assumes
    Whoever makes a release asks the ledger first. A mechanism that runs without spending is not seen.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from stirred.errors import InputError, Refusal, StirredError
from stirred.ledger import events, verification
from stirred.ledger.account import Spend
from stirred.ledger.allocation import Division
from stirred.ledger.amount import Amount
from stirred.ledger.anchor import HeadFile
from stirred.ledger.books import Books
from stirred.ledger.chain import NOTHING, Entry, Head, follow
from stirred.ledger.events import Event, Group, Sample, checked, stored
from stirred.ledger.key import Key, KeyFile
from stirred.ledger.participation import Participation, tags_digest
from stirred.ledger.reader import LedgerReader, replaced
from stirred.ledger.refusals import LedgerBusy, SameData
from stirred.ledger.roles import ROLES, Role
from stirred.ledger.seal import SECOND_CEILING, Drawing, known_elsewhere, sealed
from stirred.ledger.sqlite import PATIENCE, SqliteStorage
from stirred.ledger.statement import Preview
from stirred.ledger.storage import Transaction
from stirred.spec import Specification

Decide = Callable[[Books, Transaction], Event]

# Entries of others that are replayed in one's own turn, while the rest of the line waits: more than a few are
# replayed before if that is possible at once, more than many in any case.
NEAR, FAR = 2, 64


class _Recorded(NamedTuple):
    """An entry that was made, and the books after it."""

    entry: Entry
    books: Books


class Ledger(LedgerReader):
    """An append-only, hash-chained record of releases, with an account for every data set.

    Make one with ``Ledger.create`` and open it with ``Ledger.open``. A copy of a ledger is the same ledger:
    it holds a storage, not a balance.

    Examples
    --------
    >>> import tempfile
    >>> import stirred as st
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = st.Ledger.create(f"{folder.name}/ledger.db", owner="Ada")
    >>> ledger.appoint("Ben", "curator", by="Ada")
    >>> ledger.open_dataset("census", st.catalogue.specification("pure-dp", st.Budget.epsilon(1)), by="Ada")
    >>> release = st.catalogue.specification("pure-dp", st.Budget.epsilon("0.1"))
    >>> spend = ledger.spend("census", release, plan_digest="0" * 64, by="Ben")
    >>> print(ledger.remaining("census"))
    ε-DP(X, {X}, d_Ham^r, D_Mult), ε = 0.9
    >>> folder.cleanup()
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return (_again, (self._storage, self._anchor, self._key, self._clock))

    @classmethod
    def create(cls, path: Path | str, *, owner: str, patience: float = PATIENCE) -> Ledger:
        """Found a ledger in a new file; beside it a key (``.key``) and a head (``.head``)."""
        checked(events.Founded(owner=owner))
        place = Path(path).resolve()
        storage = SqliteStorage.create(place, patience=patience)
        key = KeyFile(_beside(place, "key"))
        secret = key.make()
        anchor = HeadFile(_beside(place, "head"))
        anchor.begin()
        ledger = cls(storage, anchor=anchor, key=key)
        ledger.found(owner, secret)
        return ledger

    @classmethod
    def open(cls, path: Path | str, *, patience: float = PATIENCE, read_only: bool = False) -> Ledger:
        """Open a ledger; a missing file, another file or another schema is refused.

        A link leads to the ledger itself, with the key and the head that lie beside it. Without its head
        file a ledger can be verified, and nothing else: see ``Ledger.restore_head``.
        """
        place = Path(path).resolve()
        storage = SqliteStorage(place, patience=patience, read_only=read_only)
        with storage.reading():
            pass
        return cls(storage, anchor=HeadFile(_beside(place, "head")), key=KeyFile(_beside(place, "key")))

    def renew_head(self, head: Head, *, by: str) -> None:
        """Write a lost head file again, from the newest head that was kept elsewhere. Owners do.

        Guarantee
            Only a ledger that has the event of that head, unchanged, is given the file, and an event says
            for ever that it was. What may have been cut behind that event is not known: a report prints
            the head of its day, and the newest one is the one to use.
        """
        if self._anchor is None or self._anchor.read() is not None:
            raise InputError(
                "the head file is there",
                field="head",
                expected="a ledger whose head file is lost",
                hint="Nothing needs to be renewed.",
            )
        with self._storage.reading() as transaction:
            entries = list(follow(transaction.rows()))
        found = {entry.sequence: entry.row().hash for entry in entries}
        if found.get(head.sequence) != head.hash:
            raise replaced(head, "the head that was given knows it")
        books = Books()
        for entry in entries:
            books = books.after(entry)
        event = events.Anchored(sequence=head.sequence, head=head.hash)
        books.role(event, by)
        self._anchor.begin(head)
        self._record(event, by)

    def found(self, owner: str, key: Key | None = None) -> None:
        """The first event of a new storage."""
        self._record(events.Founded(owner=owner, key=None if key is None else key.fingerprint), owner)

    def appoint(self, person: str, *roles: Role, by: str) -> None:
        """Give a person roles, in place of those held before; none ends them. Owners appoint."""
        unknown = [role for role in roles if role not in ROLES]
        if unknown:
            raise InputError(
                "this role is not known",
                field="roles",
                expected=" or ".join(ROLES),
                hint="See the page on the ledger for who may do what.",
            )
        self._record(events.Appointed(person=person, roles=tuple(dict.fromkeys(roles))), by)

    def open_dataset(
        self,
        dataset: str,
        ceiling: Specification,
        *,
        by: str,
        each_period: Specification | None = None,
        drawing: Drawing | None = None,
        same_data: str | None = None,
    ) -> None:
        """Open a data set with its ceiling: a flavor and the total budget in it, for good. Owners open.

        With a ``drawing``, data that are known under another name are refused: they would get a second
        ceiling. ``same_data`` is the reason why they may have one all the same; it is recorded.
        """
        each = None if each_period is None else stored(each_period, "each_period")
        event = events.Opened(
            dataset=dataset, ceiling=stored(ceiling, "ceiling"), each_period=each, sealed=drawing is not None
        )

        def decided(books: Books, transaction: Transaction) -> Event:
            others = () if drawing is None else known_elsewhere(transaction.sealed(), dataset, drawing)
            if others and same_data is None:
                raise SameData(dataset, others)
            return event

        self._record(decided, by, drawing=drawing)
        if same_data is not None:
            # Whether the data are in fact known is a function of the truth: the permission stands either way.
            self.override(dataset, SECOND_CEILING, same_data, by=by)

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
        drawing: Drawing | None = None,
    ) -> Spend:
        """Pay for a release, before it is made.

        Guarantee
            On return the spend is durable. It is refused, and nothing is recorded, unless the adaptive
            composition of all releases of the data set with this one is within the ceiling.

        Parameters
        ----------
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
        drawing
            Where the release is drawn, and from which data: kept under the key, never exported. Only a
            run in that place, on those data, can resume the release; and data that are known under the
            name of another data set are refused, unless an owner has permitted it.
        """
        terms: dict[str, Any] = {"analyst": analyst, "period": period, "fresh": fresh, "seed": seed}
        terms |= {"sample": sample, "group": group, "sealed": drawing is not None}
        event = _spent(dataset, specification, plan_digest, terms)

        def decided(books: Books, transaction: Transaction) -> Event:
            self._require_one_ceiling(books, transaction, dataset, drawing)
            if once and books.account(dataset).released(plan_digest):
                raise Refusal(
                    "this plan has been released already, or is being released",
                    field="plan",
                    expected="a plan that was not run before",
                    hint="A second release of the same data costs again: write a new plan for it.",
                )
            return event

        made = self._record(decided, by, drawing=drawing)
        return made.books.account(dataset).spend(made.entry.sequence)

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
        drawing: Drawing | None = None,
    ) -> Preview:
        """What a release would leave, for a dry run: nothing is spent, nothing is written."""
        terms: dict[str, Any] = {"analyst": analyst, "period": period, "fresh": fresh, "seed": seed}
        terms |= {"sample": sample, "group": group, "sealed": drawing is not None}
        event = _spent(dataset, specification, NOTHING, terms)
        books = self._read()
        account = books.account(dataset)
        remaining = account.remaining().within(account.flavor)
        try:
            with self._storage.reading() as transaction:
                self._require_one_ceiling(books, transaction, dataset, drawing)
            books.require_payable(event)
            after = account.charged(event)
        except StirredError as refusal:
            requested = getattr(refusal, "requested", None)
            return Preview(dataset, requested, remaining, None, account.tainted, refusal)
        requested = after.spent.amount().minus(account.spent.amount())
        left = after.remaining().within(account.flavor)
        return Preview(dataset, requested, remaining, left, account.tainted, None)

    def resume(self, dataset: str, plan_digest: str, *, by: str, drawing: Drawing | None = None) -> Spend:
        """Take up an interrupted release with exactly the plan it was paid for; nothing is spent again.

        The run that held it before can no longer finish it: of two runs of one plan only the latest may
        publish. A release that was paid for with a ``drawing`` is resumed in the same place and on the same
        data, or not at all: elsewhere, what was drawn first would stay beside what is drawn now.
        """

        def decide(books: Books, transaction: Transaction) -> Event:
            spend = books.account(dataset).waiting(plan_digest)
            known = self._drawing(transaction, books, spend)
            if known is not None:
                known.require_same(drawing)
            return events.Resumed(dataset=dataset, spend=spend.sequence, attempt=spend.attempt + 1)

        return self._attempted(decide, by)

    def begin(self, spend: Spend, *, by: str) -> Spend:
        """Say that an attempt is about to draw, before it does."""
        return self._attempted(events.Begun(**_attempt(spend)), by)

    def abandon(self, spend: Spend, *, by: str) -> Spend:
        """Give a release up before it is finished. What was spent stays spent; its run cannot finish."""
        return self._attempted(events.Abandoned(**_attempt(spend)), by)

    def discard(self, spend: Spend, attempt: int, *, by: str) -> Spend:
        """Record that what the attempts up to this one had drawn is destroyed; none of them may finish.

        Of several runs that overtook the same attempts one writes the entry; for the others nothing changes.
        """
        try:
            return self._attempted(events.Discarded(**_attempt(spend) | {"attempt": attempt}), by)
        except StirredError:
            known = self._read().account(spend.dataset).spend(spend.sequence)
            if known.manifest is not None or known.discarded < attempt:
                raise
            return known

    def finish(self, spend: Spend, manifest_digest: str, *, by: str) -> Spend:
        """Mark a release as complete, with the digest of its manifest.

        Call it when the products are complete and before they are published: the ledger decides which of
        two runs may publish. Finishing again with the same manifest changes nothing.
        """
        known = self._read().account(spend.dataset).spend(spend.sequence)
        if (known.manifest, known.attempt) == (manifest_digest, spend.attempt):
            return known
        return self._attempted(events.Finished(**_attempt(spend), manifest=manifest_digest), by)

    def _attempted(self, event: Event | Decide, by: str) -> Spend:
        """Record what happens to an attempt; the spend after it."""
        entry, books = self._record(event, by)
        made = entry.event
        assert isinstance(made, events.Attempt)
        return books.account(made.dataset).spend(made.spend)

    def allocate(
        self, dataset: str, division: Division, *, by: str, of: Specification | None = None
    ) -> dict[str, Specification]:
        """Set budget aside for analysts: ``Equal``, ``Weighted`` or ``Accurate``. Allocators allocate.

        ``of`` is the amount to divide, by default everything that is neither spent nor set aside.
        """

        def decide(books: Books, _: Transaction) -> Event:
            account = books.account(dataset)
            whole = account.unreserved() if of is None else account.priced(of)
            shares = division.shares(whole, account.flavor)
            return events.Allocated(
                dataset=dataset,
                rule=division.rule,
                shares=tuple(
                    events.Share(analyst=name, amount=part.record()) for name, part in shares.items()
                ),
            )

        entry, books = self._record(decide, by)
        event = entry.event
        assert isinstance(event, events.Allocated)
        flavor = books.account(dataset).flavor
        return {share.analyst: Amount.read(share.amount, flavor).within(flavor) for share in event.shares}

    def withdraw(self, dataset: str, analyst: str, *, by: str) -> None:
        """Return what an analyst has not spent to the data set. What is spent stays spent."""
        self._record(events.Withdrawn(dataset=dataset, analyst=analyst), by)

    def non_private_step(self, dataset: str, step: str, reason: str, *, by: str) -> None:
        """Record a step on the confidential data that no guarantee covers: it taints all that follows."""
        self._record(events.NonPrivate(dataset=dataset, step=step, reason=reason), by)

    def override(self, dataset: str, step: str, reason: str, *, by: str) -> None:
        """Record that an open step of the checklist was overridden. Owners override."""
        self._record(events.Overridden(dataset=dataset, step=step, reason=reason), by)

    def participate(self, spend: Spend, ids: Iterable[object], *, limit: int, by: str) -> Participation:
        """Record who took part in a release, by salted id, and count the persons in too many releases.

        The count is confidential, as are the ids: it is for the steward, not for publication.
        """
        if type(limit) is not int or limit < 1:
            raise InputError(
                "the limit is not a number of releases",
                field="limit",
                expected="a whole number of at least one",
                hint="A person who appears in more releases than this raises the alarm.",
            )
        tags = self._secret().tags(ids)
        event = events.Participated(dataset=spend.dataset, spend=spend.sequence, tags=tags_digest(tags))
        over = 0

        def keep(transaction: Transaction) -> None:
            nonlocal over
            transaction.add_tags(spend.sequence, tags)
            over = transaction.crowd(limit)

        self._record(event, by, keep)
        return Participation(limit, over)

    def _require_one_ceiling(
        self, books: Books, transaction: Transaction, dataset: str, drawing: Drawing | None
    ) -> None:
        """Refuse data that are known under another name, unless an owner has permitted it."""
        if drawing is None:
            return
        others = [
            other
            for other in known_elsewhere(transaction.sealed(), dataset, drawing)
            if not (_permitted(books, dataset) or _permitted(books, other))
        ]
        if others:
            raise SameData(dataset, tuple(others))

    def _record(
        self,
        event: Event | Decide,
        by: str,
        keep: Callable[[Transaction], None] | None = None,
        drawing: Drawing | None = None,
    ) -> _Recorded:
        """Decide, append and commit in one transaction; the state in memory moves only afterwards.

        The head file is written before the next writer's turn, so that it never goes back.
        """
        key = None if drawing is None else self._secret()
        if self._behind() > FAR:
            self._read()
        after: Books | None = None

        def keep_head() -> None:
            if self._anchor is not None and after is not None and after.head is not None:
                self._anchor.write(after.head)

        with self._storage.writing(self._glance, keep_head) as transaction:
            books = self._caught_up(transaction)
            if key is not None:
                verification.require_seals(transaction, books, key)
            chosen = event(books, transaction) if callable(event) else event
            after, entry = self._entered(books, checked(chosen), by)
            row = entry.row()
            transaction.append(row)
            if drawing is not None and key is not None:
                text = drawing.text(getattr(chosen, "dataset", ""))
                transaction.keep_sealed(sealed(key, row.sequence, row.hash, text))
            if keep is not None:
                keep(transaction)
        return _Recorded(entry, self._kept(after))

    def _glance(self) -> None:
        """Replay what others have written while it is still their turn, unless they write just now."""
        if self._behind() > NEAR:
            with contextlib.suppress(LedgerBusy):
                self._read(wait=False)

    def _behind(self) -> float:
        """How many entries the books in memory are behind, as far as the head file tells."""
        if self._books.head is None:
            return math.inf
        kept = None if self._anchor is None else self._anchor.read()
        return 0 if kept is None else kept.sequence - self._books.head.sequence

    def _entered(self, books: Books, event: Event, by: str) -> tuple[Books, Entry]:
        sequence, previous = (
            (0, NOTHING) if books.head is None else (books.head.sequence + 1, books.head.hash)
        )
        at = (self._clock() if self._clock else datetime.now(UTC)).astimezone(UTC)
        when = at.isoformat(timespec="microseconds")
        entry = Entry(sequence, previous, when, by, books.role(event, by), event)
        return books.after(entry), entry


def _spent(dataset: str, specification: Specification, plan: str, terms: dict[str, Any]) -> events.Spent:
    paid = stored(specification, "specification")
    return events.Spent(dataset=dataset, specification=paid, plan=plan, **terms)


def _attempt(spend: Spend) -> dict[str, Any]:
    return {"dataset": spend.dataset, "spend": spend.sequence, "attempt": spend.attempt}


def _permitted(books: Books, dataset: str) -> bool:
    """Whether an owner has permitted a data set a ceiling of its own, whatever data it has."""
    return any(text.startswith(f"{SECOND_CEILING}: ") for text in books.account(dataset).overridden)


def _again(*parts: Any) -> Ledger:
    storage, anchor, key, clock = parts
    return Ledger(storage, anchor=anchor, key=key, clock=clock)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(f"{path.name}.{ending}")

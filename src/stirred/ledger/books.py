"""The books: what follows from the events, and what may follow next.

Guarantee
    ``Books.after`` is the only way from one state to the next, for a writer and for an auditor alike: an
    entry that the rules refuse (a role, a budget, a plan, a seed) can be neither written nor verified.
Assumes
    Entries come in the order of the chain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stirred.errors import InputError, NonFreshSeeds, UnknownName
from stirred.ledger import events
from stirred.ledger.account import Account, Spend
from stirred.ledger.amount import Amount
from stirred.ledger.chain import Entry, Head
from stirred.ledger.changed import changed
from stirred.ledger.events import Event, specified
from stirred.ledger.growing import Growing
from stirred.ledger.refusals import NotOpen, NotPermitted
from stirred.ledger.roles import Role, not_own, permitted
from stirred.spec import compose


@dataclass(frozen=True)
class Books:
    """The state of a ledger after some entries.

    ``seeds`` has the event that used each, ``sealed`` the hash of each event that something is sealed with.
    """

    head: Head | None = None
    people: Mapping[str, tuple[Role, ...]] = field(default_factory=dict)
    accounts: Mapping[str, Account] = field(default_factory=dict)
    seeds: Growing[str, int] = field(default_factory=Growing)
    sealed: Growing[int, str] = field(default_factory=Growing)
    key: str | None = None

    def account(self, dataset: str) -> Account:
        if dataset not in self.accounts:
            known = ", ".join(sorted(self.accounts)) or "none so far"
            raise UnknownName(
                "this data set is not in the ledger",
                field="dataset",
                expected=f"one of: {known}",
                hint="An owner opens it: ledger.open_dataset(name, ceiling, by=owner).",
            )
        return self.accounts[dataset]

    def role(self, event: Event, name: str) -> Role:
        """The role under which a person may make an entry."""
        held: tuple[Role, ...] = self.people.get(name, ())
        if self.head is None and isinstance(event, events.Founded):
            held = ("owner",)
        role = permitted(event.kind, name, held)
        if role == "analyst" and isinstance(event, events.Spent | events.Attempt):
            self._require_own(event, name)
        return role

    def _require_own(self, event: events.Spent | events.Attempt, name: str) -> None:
        paid = event if isinstance(event, events.Spent) else self.account(event.dataset).spend(event.spend)
        if paid.analyst != name:
            raise not_own(name)

    def after(self, entry: Entry) -> Books:
        """The books with one more entry, or the refusal of it."""
        if entry.role != self.role(entry.event, entry.name):
            raise NotPermitted(
                f"{entry.name} acted as {entry.role}, which is not the role the act was permitted in",
                field="by",
                expected="the first role that permits the act",
                hint="Let the ledger choose the role.",
            )
        if (self.head is None) != (entry.event.kind == "founded"):
            raise InputError(
                "a ledger is founded once, by its first event",
                field="event",
                expected="one founding event, at the beginning",
                hint="Use Ledger.create for a new ledger.",
            )
        row, sealed = entry.row(), self.sealed
        if getattr(entry.event, "sealed", False):
            sealed = sealed.plus(row.sequence, row.hash)
        return changed(self._with(entry), head=Head(row.sequence, row.hash), sealed=sealed)

    def _with(self, entry: Entry) -> Books:
        event = entry.event
        if isinstance(event, events.Spent):
            seeds = self.seeds if event.seed is None else self.seeds.plus(event.seed, entry.sequence)
            return self._put(self._spent(self.account(event.dataset), event, entry), seeds)
        if isinstance(event, events.Founded):
            return changed(self, people={event.owner: ("owner",)}, key=event.key)
        if isinstance(event, events.Anchored):
            return self
        if isinstance(event, events.Appointed):
            return self._appointed(event)
        if isinstance(event, events.Opened):
            return self._opened(event)
        return self._put(self._noted(self.account(event.dataset), event))

    def _put(self, account: Account, seeds: Growing[str, int] | None = None) -> Books:
        accounts = {**self.accounts, account.name: account}
        return changed(self, accounts=accounts, seeds=self.seeds if seeds is None else seeds)

    def _appointed(self, event: events.Appointed) -> Books:
        people = {**self.people, event.person: event.roles}
        if not any("owner" in roles for roles in people.values()):
            raise InputError(
                "the last owner cannot give up the role",
                field="roles",
                expected="at least one owner at any time",
                hint="Appoint another owner first.",
            )
        return changed(self, people=people)

    def _opened(self, event: events.Opened) -> Books:
        if event.dataset in self.accounts:
            raise InputError(
                f"the data set {event.dataset} is open already",
                field="dataset",
                expected="a name that is not in the ledger",
                hint="A ceiling does not change: it was set before the first release. Nothing is reset.",
            )
        return self._put(Account.open(event))

    def _spent(self, account: Account, event: events.Spent, entry: Entry) -> Account:
        if account.pending(event.plan) is not None:
            raise NotOpen(
                f"this plan has an open spend on {account.name}",
                field="plan",
                expected="a plan without an open spend",
                hint="Take the release up again with ledger.resume(dataset, plan): it costs nothing more.",
            )
        self.require_payable(event)
        spend = Spend(
            sequence=entry.sequence,
            dataset=account.name,
            specification=specified(event.text),
            plan=event.plan,
            name=entry.name,
            at=entry.at,
            analyst=event.analyst,
            period=event.period,
            group=event.group,
            tainted=account.tainted,
        )
        return account.charged(event).with_spend(spend)

    def require_payable(self, event: events.Spent) -> None:
        """Refuse randomness that another release used, and an account that is nobody's."""
        self._require_fresh(event)
        self._require_analyst(event.analyst)

    def _require_fresh(self, event: events.Spent) -> None:
        """Composition with shared randomness needs the joint law."""
        if event.fresh and (event.seed is None or event.seed not in self.seeds):
            return
        try:
            compose(specified(event.text), seeds="shared")
        except NonFreshSeeds as error:
            raise NonFreshSeeds(
                f"this release is not made with fresh randomness: {error.problem}",
                field="seed",
                expected=error.expected,
                hint="Draw a fresh seed; or spend the specification of all outputs together, as one release; "
                "or, if it was published already, record it as a step without protection.",
            ) from None

    def _require_analyst(self, name: str | None) -> None:
        if name is not None and "analyst" not in self.people.get(name, ()):
            raise NotPermitted(
                f"{name} is not an analyst",
                field="analyst",
                expected="a person appointed as analyst",
                hint="An owner appoints people: ledger.appoint(name, 'analyst', by=owner).",
            )

    def _noted(self, account: Account, event: Event) -> Account:
        if isinstance(event, events.Attempt):
            return account.with_spend(_attempted(account.spend(event.spend), event))
        if isinstance(event, events.Allocated):
            for share in event.shares:
                self._require_analyst(share.analyst)
            read = {s.analyst: Amount.read(s.amount, account.flavor) for s in event.shares}
            return account.allowed(read)
        if isinstance(event, events.Withdrawn):
            return account.withdrawn(event.analyst)
        if isinstance(event, events.NonPrivate):
            return changed(account, tainted=(*account.tainted, f"{event.step}: {event.reason}"))
        if isinstance(event, events.Overridden):
            return changed(account, overridden=(*account.overridden, f"{event.step}: {event.reason}"))
        if isinstance(event, events.Participated):
            return self._tracked(account, event)
        raise InputError(
            "an event has no place here",
            field="event",
            expected="an event on a data set",
            hint="Run `stirred ledger verify`.",
        )

    def _tracked(self, account: Account, event: events.Participated) -> Account:
        spend = account.spend(event.spend)
        if spend.tracked:
            raise InputError(
                f"the participants of event {event.spend} are recorded already",
                field="spend",
                expected="a release whose participants are not yet recorded",
                hint="Record all participants of a release in one call.",
            )
        return account.with_spend(changed(spend, tracked=True))


def _attempted(spend: Spend, event: events.Attempt) -> Spend:
    if isinstance(event, events.Discarded):
        return _discarded(spend, event.attempt)
    resumed = isinstance(event, events.Resumed)
    _require_attempt(spend, event.attempt - 1 if resumed else event.attempt)
    if resumed:
        return changed(spend, attempt=event.attempt)
    if isinstance(event, events.Begun):
        return changed(spend, begun=event.attempt)
    if isinstance(event, events.Finished):
        _require_kept(spend)
        return changed(spend, manifest=event.manifest)
    return changed(spend, abandoned=True)


def _discarded(spend: Spend, attempt: int) -> Spend:
    """Refuse to call destroyed what has appeared, or what was destroyed before."""
    if spend.manifest is not None or not spend.discarded < attempt <= spend.attempt:
        raise InputError(
            f"event {spend.sequence} has no such attempt whose leftovers can be destroyed",
            field="attempt",
            expected="an attempt of a release that is not finished, once",
            hint="What was published cannot be taken back.",
        )
    return changed(spend, discarded=attempt)


def _require_kept(spend: Spend) -> None:
    """Refuse to finish what was destroyed."""
    if spend.discarded >= spend.attempt:
        raise NotOpen(
            f"what this attempt at the release of event {spend.sequence} had drawn is destroyed",
            field="attempt",
            expected="an attempt that is resumed",
            hint="Resume the release: it draws again.",
        )


def _require_attempt(spend: Spend, attempt: int) -> None:
    """Refuse to touch a finished or abandoned spend, or one that another run has taken up since."""
    if spend.abandoned:
        raise NotOpen(
            f"the release of event {spend.sequence} was abandoned",
            field="spend",
            expected="an open spend",
            hint="It was paid for and given up; a new release of the plan costs again.",
        )
    if spend.manifest is not None:
        raise NotOpen(
            f"the release of event {spend.sequence} is finished",
            field="spend",
            expected="an open spend",
            hint="A second set of products would be a second release, which spends again: do not publish it.",
        )
    if spend.attempt != attempt:
        raise NotOpen(
            f"the release of event {spend.sequence} was resumed by another run",
            field="attempt",
            expected=f"attempt {spend.attempt}, the latest",
            hint="Two runs of one plan must not both publish: discard the products of this one.",
        )

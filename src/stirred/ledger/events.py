"""Events: what happened, to which data set, under which specification. Never a running total.

Guarantee
    Every event is immutable, strict plain data: it is read back as it was written, or refused.
Assumes
    Nothing: what an event costs is the accountant's business, and what may follow it is the books'.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError, field_validator

from stirred.errors import InputError, NewerSchema, StirredError, not_a_specification
from stirred.ledger.canonical import canonical, require_digest, require_name
from stirred.ledger.roles import Role
from stirred.spec import Block, Specification, as_fraction

Record = dict[str, Any]
Design = Literal["simple-random", "poisson"]


class Group(Block):
    """How many units of the release's kind one unit of the ceiling's kind can be, and why."""

    factor: str
    because: str

    @field_validator("factor", mode="before")
    @classmethod
    def _exact(cls, value: object) -> str:
        return _exact(value, lambda factor: factor >= 1, "a factor of at least one")


class Sample(Block):
    """A secret random sample that releases share, with the rate at which a unit is drawn.

    Assumes
        The sample was drawn afresh, independently of the data and of every other sample, and nobody
        learns who is in it. The specification of a release that names a sample is the guarantee *given*
        the sample, without amplification: the accountant amplifies all of its releases at once.
    """

    name: str
    rate: str
    design: Design

    @field_validator("rate", mode="before")
    @classmethod
    def _exact(cls, value: object) -> str:
        return _exact(value, lambda rate: 0 < rate <= 1, "a rate above 0 and at most 1")


class Founded(Block):
    """The first event: who owns the ledger, and the fingerprint of the key of its salted ids."""

    kind: Literal["founded"] = "founded"
    owner: str
    key: str | None = None


class Anchored(Block):
    """A lost head file was written again, on an owner's word, from this head; what was cut is not known."""

    kind: Literal["anchored"] = "anchored"
    sequence: int
    head: str


class Appointed(Block):
    """The roles that a person holds from now on; none ends them."""

    kind: Literal["appointed"] = "appointed"
    person: str
    roles: tuple[Role, ...]


class Opened(Block):
    """A data set with its ceiling: a whole specification, flavor and total budget.

    ``sealed`` says that the ledger keeps, under its key and out of the chain, which data they are.
    """

    kind: Literal["opened"] = "opened"
    dataset: str
    ceiling: Record
    each_period: Record | None = None
    sealed: bool = False


class Spent(Block):
    """A release about to be made. Written before the mechanism runs; it stays, whatever happens next.

    ``sealed`` says that the ledger keeps, under its key and out of the chain, where it is drawn and from
    which data.
    """

    kind: Literal["spent"] = "spent"
    dataset: str
    specification: Record
    plan: str
    analyst: str | None = None
    period: str | None = None
    fresh: bool = True
    seed: str | None = None
    sample: Sample | None = None
    group: Group | None = None
    sealed: bool = False

    @cached_property
    def text(self) -> str:
        """The canonical text of the specification, by which it is known."""
        return canonical(self.specification)


class Attempt(Block):
    """What happens to one attempt at a release that was paid for; ``spend`` is the number of its event."""

    dataset: str
    spend: int
    attempt: int


class Begun(Attempt):
    """An attempt at a release that is about to draw: from here on it may have left something behind."""

    kind: Literal["begun"] = "begun"


class Resumed(Attempt):
    """An interrupted release taken up again, under the same plan; earlier attempts may not finish."""

    kind: Literal["resumed"] = "resumed"


class Abandoned(Attempt):
    """A release that is given up before it was finished: its spend stays, its products may not appear."""

    kind: Literal["abandoned"] = "abandoned"


class Discarded(Attempt):
    """What the attempts up to this one had drawn is destroyed; none of them may finish."""

    kind: Literal["discarded"] = "discarded"


class Finished(Attempt):
    """A release whose products are complete: their manifest's digest."""

    kind: Literal["finished"] = "finished"
    manifest: str


class Share(Block):
    """An analyst's part of an allocation, in the coordinates that add up."""

    analyst: str
    amount: dict[str, str]


class Allocated(Block):
    """Parts of a data set's budget set aside for analysts."""

    kind: Literal["allocated"] = "allocated"
    dataset: str
    rule: Literal["equal", "weighted", "accuracy"]
    shares: tuple[Share, ...]


class Withdrawn(Block):
    """What an analyst has not spent returns to the data set."""

    kind: Literal["withdrawn"] = "withdrawn"
    dataset: str
    analyst: str


class NonPrivate(Block):
    """A step on the confidential data that no specification covers: it taints what follows."""

    kind: Literal["non-private"] = "non-private"
    dataset: str
    step: str
    reason: str


class Overridden(Block):
    """A step of the deployment checklist that was overridden, and why."""

    kind: Literal["overridden"] = "overridden"
    dataset: str
    step: str
    reason: str


class Participated(Block):
    """Who took part in a release: the digest of the salted ids, which are kept beside the events."""

    kind: Literal["participated"] = "participated"
    dataset: str
    spend: int
    tags: str


Event = (
    Founded
    | Anchored
    | Appointed
    | Opened
    | Spent
    | Begun
    | Resumed
    | Abandoned
    | Discarded
    | Finished
    | Allocated
    | Withdrawn
    | NonPrivate
    | Overridden
    | Participated
)
KINDS = tuple(model.model_fields["kind"].default for model in Event.__args__)
_READER: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="kind")])

_LAST, _END = ',"specification":', '},"format":'

_NAMES = ("dataset", "owner", "person", "analyst", "period", "step", "reason", "because", "name")
_DIGESTS = ("plan", "manifest", "seed", "key", "tags", "head")


def write(event: Event) -> Record:
    """The event as plain data; absent fields are left out."""
    record: Record = event.model_dump(mode="json", exclude_none=True)
    return record


def text_of(event: Event, specification: str | None = None) -> str:
    """The canonical text of what ``write`` writes; that of a specification may be known.

    The specification is the last of the fields of a release in order, and by far the longest.
    """
    if not isinstance(event, Spent):
        return canonical(write(event))
    terms = event.model_dump(mode="json", exclude_none=True, exclude={"specification"})
    return f"{canonical(terms)[:-1]}{_LAST}{specification or event.text}}}"


def specification_in(text: str) -> str | None:
    """What stands in the place of a specification in the canonical text of an entry, if it is canonical."""
    start, end = text.find(_LAST) + len(_LAST), text.rfind(_END)
    found = text[start:end]
    return found if len(_LAST) <= start < end and _is_canonical(found) else None


@lru_cache(maxsize=1024)
def _is_canonical(text: str) -> bool:
    """Whether a text is the canonical one of a JSON object."""
    try:
        value = json.loads(text)
        return isinstance(value, dict) and canonical(value) == text
    except ValueError:
        return False


def read(record: Record) -> Event:
    """Read what ``write`` wrote; an unknown kind is from a newer version."""
    if record.get("kind") not in KINDS:
        raise NewerSchema(
            "an event is of a kind that this version does not know",
            field="event.kind",
            expected=f"one of {', '.join(KINDS)}",
            hint="Upgrade stirred; nothing is guessed from a newer ledger.",
        )
    try:
        return _READER.validate_python(record)
    except ValidationError:
        raise InputError(
            "an event does not have the fields of its kind",
            field="event",
            expected="the fields listed in stirred.ledger.events",
            hint="Run `stirred ledger verify`.",
        ) from None


def checked(event: Event) -> Event:
    """The event, with every name and digest in it checked."""
    parts: list[Block] = [event, *(v for v in dict(event).values() if isinstance(v, Block))]
    if isinstance(event, Allocated):
        parts += event.shares
    for part in parts:
        for field, value in dict(part).items():
            if value is not None and field in _NAMES:
                require_name(value, field)
            if value is not None and field in _DIGESTS:
                require_digest(value, field)
    return event


def stored(specification: Specification, field: str) -> Record:
    """A specification as plain data, if it is read back exactly as it is."""
    if not isinstance(specification, Specification):
        raise not_a_specification(field)
    record = specification.record()
    if guarantee(record) != specification:
        raise InputError(
            "the specification is not read back from JSON as it is",
            field=field,
            expected="blocks that survive to_json and from_json",
            hint="Avoid empty texts and points that JSON cannot tell apart.",
        )
    return record


def guarantee(record: Record) -> Specification:
    """The specification that an event carries."""
    return specified(canonical(record))


@lru_cache(maxsize=1024)
def specified(text: str) -> Specification:
    """The specification in a canonical text."""
    return Specification.read(json.loads(text))


def _exact(value: object, holds: Callable[[Fraction], bool], expected: str) -> str:
    try:
        number = as_fraction(value)
    except StirredError:
        raise ValueError(expected) from None
    if not holds(number):
        raise ValueError(expected)
    return str(number)

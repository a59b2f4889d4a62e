"""The deployment checklist: eleven steps in order, and the gate that a release has to pass.

The steps are those of *Hands-On Differential Privacy* (chapter 13). Each has an owner and evidence; step 10
asks whether the figures are useful enough and, if not, leads back to an earlier step, which reopens
everything after it. A release is refused while a mandatory step is open. An override is possible, by
name and for named steps only, and it is an object, so that the ledger and the report can carry it. It can
also permit that the exact statistics determine more records than the plan allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from pydantic import AwareDatetime, Field, model_validator

from stirred.errors import Refusal, UnknownName
from stirred.spec import Block

Status = Literal["open", "done", "not applicable"]
Role = Literal["owner", "curator", "allocator", "analyst"]

DETERMINED = "more records determined by the exact statistics than the plan allows"
LOOP_FROM = 10
RELEASE = 11


@dataclass(frozen=True)
class Definition:
    """What a step asks. ``role`` usually owns it; ``waivable`` steps may be declared not applicable."""

    number: int
    title: str
    role: Role
    items: tuple[str, ...]
    mandatory: bool = True
    waivable: bool = False

    def letters(self) -> dict[str, str]:
        """The sub-items by letter: a, b, c, and so on."""
        return dict(zip("abcdefgh", self.items, strict=False))


STEPS: tuple[Definition, ...] = (
    Definition(
        1,
        "Understand your data",
        "curator",
        (
            "The data are structured and annotated (schema and codebook)",
            "The sample frame is known, where data are collected",
            "What can be public and what cannot is decided",
            "Similar public sources are identified",
        ),
    ),
    Definition(
        2,
        "Other security practices",
        "owner",
        ("Storage, encryption and access follow the organisation's policies",),
        waivable=True,
    ),
    Definition(
        3,
        "Communication strategy",
        "owner",
        (
            "How each group of stakeholders is told is settled in advance",
            "Experts to be consulted are known and reachable",
        ),
        mandatory=False,
        waivable=True,
    ),
    Definition(
        4,
        "Tracking of individuals across releases",
        "curator",
        (
            "Whether membership in releases (and who reads them) is tracked is decided",
            "The tracking is kept up to date, where there is one",
        ),
        mandatory=False,
        waivable=True,
    ),
    Definition(
        5,
        "Stakeholders and audience",
        "owner",
        (
            "The utility that the audience needs is known",
            "The release is worth making, given that need and the error that protection adds",
            "The protection loss is not too risky to justify",
            "Who sees the release and how it reaches them is settled",
        ),
        waivable=True,
    ),
    Definition(
        6,
        "Regulations",
        "owner",
        ("Legal and regulatory partners confirmed what applies and that the release follows it",),
        waivable=True,
    ),
    Definition(
        7,
        "Unit of privacy",
        "curator",
        (
            "What is protected is stated (the protection unit)",
            "Whether a row is an individual, a group or an event is known",
        ),
    ),
    Definition(
        8,
        "Privacy risk",
        "allocator",
        (
            "A guideline of the organisation or industry, or a precedent, was consulted",
            "The budget fits the nature of the data",
        ),
    ),
    Definition(
        9,
        "Plan of the release",
        "curator",
        (
            "Every public output that rests on confidential values is listed",
            "The outputs are ranked by the utility they need",
            "Public information is collected: bounds, key sets, marginals, population size",
            "What is not protected is stated (invariants included)",
        ),
    ),
    Definition(
        10,
        "Query",
        "analyst",
        (
            "Mechanisms are chosen",
            "Libraries and tools are identified",
            "Leakage is checked and the specification fits the budget",
            "The final protection loss budget is set",
            "The pipeline is built and tried on public or synthetic data",
            "The figures are useful enough (if not, return to an earlier step)",
        ),
    ),
    Definition(
        11,
        "Release",
        "curator",
        (
            "The pipeline ran on the confidential data and the products were published",
            "The tracking was updated, where there is one",
        ),
    ),
)


class Answer(Block):
    """What was settled about one sub-item; without an answer it stands as its step stands."""

    status: Status
    note: str = ""

    @model_validator(mode="after")
    def _reason(self) -> Self:
        if self.status == "not applicable" and not self.note.strip():
            raise ValueError("a note that says why the item does not apply")
        return self


class Step(Block):
    """One step as it stands. A step that is done has an owner and evidence; a waived one has a reason.

    ``mandatory`` can make an optional step mandatory, never the reverse: that is what an override is for.
    """

    step: int = Field(ge=1, le=len(STEPS))
    status: Status = "open"
    owner: str = ""
    evidence: tuple[str, ...] = ()
    reason: str = ""
    mandatory: bool | None = None
    items: dict[str, Answer] = Field(default_factory=dict)

    @property
    def definition(self) -> Definition:
        """What the step asks."""
        return STEPS[self.step - 1]

    @property
    def required(self) -> bool:
        """Whether a release waits for it."""
        return self.definition.mandatory if self.mandatory is None else self.mandatory

    @property
    def settled(self) -> bool:
        """Whether it is done or does not apply."""
        return self.status != "open"

    @property
    def name(self) -> str:
        """Number and title."""
        return f"{self.step} ({self.definition.title})"

    @model_validator(mode="after")
    def _complete(self) -> Self:
        unknown = sorted(set(self.items) - set(self.definition.letters()))
        if unknown:
            raise ValueError(f"items among {', '.join(self.definition.letters())} in step {self.step}")
        if self.mandatory is False and self.definition.mandatory:
            raise ValueError(f"step {self.step} mandatory: use an override, which is recorded")
        if self.settled:
            self._answered_for()
        return self

    def _answered_for(self) -> None:
        if not self.owner.strip():
            raise ValueError(f"an owner for step {self.step}, which is {self.status}")
        if self.status == "done" and not any(entry.strip() for entry in self.evidence):
            raise ValueError(f"evidence for step {self.step}, which is done")
        if self.status == "done" and any(answer.status == "open" for answer in self.items.values()):
            raise ValueError(f"no open item in step {self.step}, which is done")
        if self.status == "not applicable" and not self.reason.strip():
            raise ValueError(f"a reason why step {self.step} does not apply")
        if self.status == "not applicable" and not self.definition.waivable:
            raise ValueError(f"step {self.step} open or done: it applies to every release")


class Return(Block):
    """A way back from step 10 to an earlier step, because the figures were not useful enough."""

    to: int = Field(ge=1, lt=LOOP_FROM)
    reason: str = Field(min_length=1)
    by: str = Field(min_length=1)
    at: AwareDatetime


class Override(Block):
    """Permission to release although some steps are open: which, by whom, why and when.

    ``determined`` permits that the exact statistics determine more records than the plan allows.
    """

    steps: tuple[int, ...] = ()
    determined: bool = False
    by: str
    reason: str
    at: AwareDatetime

    @model_validator(mode="after")
    def _answered_for(self) -> Self:
        if not (self.by.strip() and self.reason.strip()):
            raise ValueError("a name and a reason: an override is answered for")
        if not (self.steps or self.determined):
            raise ValueError("what is overridden: steps of the checklist, or determined")
        if len(set(self.steps)) != len(self.steps) or not all(1 <= n < RELEASE for n in self.steps):
            raise ValueError("distinct numbers of steps that come before the release")
        return self


class Passage(Block):
    """That a checklist passed the gate, and how: what the ledger and the report record.

    ``overridden`` lists the mandatory steps that were open; ``optional`` the optional ones; ``determined``
    says that the exact statistics determine more records than the plan allows. A trial is not ``consulted``.
    """

    consulted: bool = True
    overridden: tuple[int, ...] = ()
    optional: tuple[int, ...] = ()
    determined: bool = False
    override: Override | None = None

    def although_determined(self, override: Override) -> Passage:
        """The same passage, with permission for what the exact statistics determine."""
        return Passage(**dict(self) | {"determined": True, "override": override})

    def what(self) -> str:
        """What was overridden, for the ledger."""
        steps = ["checklist steps " + ", ".join(map(str, self.overridden))] if self.overridden else []
        return "; ".join([*steps, *([DETERMINED] if self.determined else [])])

    def sentence(self) -> str:
        """In words."""
        if not self.consulted:
            text = "A trial: the checklist was not consulted."
            if self.override is not None:
                text += f" It was made although there are {DETERMINED}. Reason given: {self.override.reason}"
        elif self.override is None:
            text = "Every mandatory step of the checklist was settled before the release."
        else:
            listed = ", ".join(STEPS[n - 1].title.lower() for n in self.overridden)
            when = self.override.at.date().isoformat()
            steps = [f"while these mandatory steps were open: {listed}"] if listed else []
            empty = [f"although there are {DETERMINED}"] if self.determined else []
            text = (
                f"OVERRIDE: released by permission of {self.override.by} ({when}) "
                f"{', and '.join([*steps, *empty])}. Reason given: {self.override.reason}"
            )
        if self.optional:
            left = ", ".join(STEPS[n - 1].title.lower() for n in self.optional)
            text += f" Optional steps left open: {left}."
        return text


class Checklist(Block):
    """The eleven steps of one release, always all of them: a step that a plan leaves out is open.

    Examples
    --------
    >>> checklist = Checklist.starter()
    >>> [step.step for step in checklist.blocking()]
    [1, 2, 5, 6, 7, 8, 9, 10]
    """

    steps: tuple[Step, ...] = ()
    returns: tuple[Return, ...] = ()

    @model_validator(mode="after")
    def _all_steps(self) -> Self:
        given = [step.step for step in self.steps]
        if len(set(given)) != len(given):
            raise ValueError("each step once")
        if given != sorted(given):
            raise ValueError("the steps in their order, 1 to 11")
        known = {step.step: step for step in self.steps}
        complete = tuple(known.get(d.number, Step(step=d.number)) for d in STEPS)
        # The model is frozen for its users; here it is still being built.
        object.__setattr__(self, "steps", complete)
        return self

    @classmethod
    def starter(cls, owners: Mapping[Role, str] | None = None) -> Self:
        """A checklist with every step open; ``owners`` names who usually owns what, by role."""
        names = owners or {}
        return cls(steps=tuple(Step(step=d.number, owner=names.get(d.role, "")) for d in STEPS))

    def record(self) -> dict[str, Any]:
        """The checklist as plain JSON data: steps of which nothing is said are left out."""
        steps = [step.record() for step in self.steps]
        said = [step for step in steps if set(step) != {"step"}]
        returns = [entry.record() for entry in self.returns]
        return ({"steps": said} if said else {}) | ({"returns": returns} if returns else {})

    def step(self, number: int) -> Step:
        """One step by its number."""
        if not 1 <= number <= len(STEPS):
            raise UnknownName(
                "there is no such step",
                field="checklist.step",
                expected=f"a number from 1 to {len(STEPS)}",
                hint="The checklist has eleven steps.",
            )
        return self.steps[number - 1]

    def blocking(self) -> tuple[Step, ...]:
        """Mandatory steps before the release that are open."""
        return tuple(s for s in self.steps[: RELEASE - 1] if s.required and not s.settled)

    def out_of_order(self) -> tuple[Step, ...]:
        """Steps that were settled although a mandatory step before them is open."""
        blocking = self.blocking()
        first = blocking[0].step if blocking else len(STEPS) + 1
        return tuple(s for s in self.steps if s.settled and s.step > first)

    def close(
        self,
        number: int,
        *,
        owner: str = "",
        evidence: Iterable[str] = (),
        reason: str = "",
        items: Mapping[str, Answer] | None = None,
    ) -> Checklist:
        """Settle a step: done on evidence, or (with a reason and no evidence) not applicable.

        The steps are sequential: one cannot be settled while a mandatory one before it is open.
        """
        step = self.step(number)
        earlier = [s for s in self.blocking() if s.step < number]
        if earlier:
            raise Refusal(
                f"step {number} waits for {_named(earlier)}",
                field=f"checklist.steps.{number}",
                expected="every mandatory step before it settled",
                hint="The checklist is worked through in order.",
            )
        found = tuple(evidence)
        fields = dict(step) | {
            "owner": owner or step.owner,
            "evidence": found or step.evidence,
            "reason": reason,
            "status": "not applicable" if reason and not found else "done",
            "items": dict(items) if items is not None else step.items,
        }
        return self._with(Step(**fields))

    def released(self, passage: Passage, *, owner: str, evidence: Iterable[str]) -> Checklist:
        """Settle step 11 after a release that passed the gate, by override or without."""
        left = [step for step in self.blocking() if step.step not in passage.overridden]
        if left:
            raise _refused(left, ())
        fields = {"owner": owner, "evidence": tuple(evidence), "status": "done"}
        return self._with(Step(**dict(self.step(RELEASE)) | fields))

    def _with(self, step: Step) -> Checklist:
        steps = tuple(step if s.step == step.step else s for s in self.steps)
        return Checklist(steps=steps, returns=self.returns)


def gate(checklist: Checklist, override: Override | None = None) -> Passage:
    """Let a release pass, or refuse it while a mandatory step is open.

    Parameters
    ----------
    override
        Permission for named steps. It counts for these alone; one that was not needed is not recorded.
    """
    if checklist.step(RELEASE).settled:
        raise Refusal(
            "the checklist says that the release was already made",
            field=f"checklist.steps.{RELEASE}",
            expected="step 11 open: the release itself settles it",
            hint="Start a new checklist for a new release; every release is decided on its own.",
        )
    blocking = checklist.blocking()
    permitted = set(override.steps) if override is not None else set()
    missing = [step for step in blocking if step.step not in permitted]
    if missing:
        raise _refused(missing, checklist.out_of_order())
    optional = tuple(s.step for s in checklist.steps[: RELEASE - 1] if not s.required and not s.settled)
    overridden = tuple(step.step for step in blocking)
    return Passage(overridden=overridden, optional=optional, override=override if overridden else None)


def _refused(missing: list[Step], early: tuple[Step, ...]) -> Refusal:
    revisit = f" Then look again at {_named(early)}, settled too early." if early else ""
    return Refusal(
        f"the release is refused: mandatory steps of the checklist are open: {_named(missing)}",
        field="checklist.steps",
        expected="every mandatory step done, with owner and evidence",
        hint=f"Settle them in order, or record an override for these steps.{revisit}",
    )


def starter_yaml(indent: int = 0) -> str:
    """The steps as commented YAML, for a starter plan."""
    lines = ["steps:"]
    for definition in STEPS:
        needed = "mandatory" if definition.mandatory else "optional"
        lines.append(f"  # {definition.number}. {definition.title} ({needed}; usually the {definition.role})")
        lines += [f"  #    {letter}. {text}" for letter, text in definition.letters().items()]
        lines += [f"  - step: {definition.number}", "    status: open", '    owner: ""', "    evidence: []"]
    return "".join(" " * indent + line + "\n" for line in lines)


def _named(steps: Iterable[Step]) -> str:
    return ", ".join(step.name for step in steps)

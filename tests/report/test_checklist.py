"""The checklist: eleven steps in order, the loop from step 10, the gate and its override."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import yaml

from stirred.errors import InputError, Refusal, UnknownName
from stirred.report import Checklist, Override, Passage, gate, starter_yaml
from stirred.report.checklist import STEPS, Answer, Step

MANDATORY = (1, 2, 5, 6, 7, 8, 9, 10)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def settled(*left_open: int) -> Checklist:
    """Every step before the release done, except those named (and what a plan file may leave open)."""
    return Checklist(
        steps=tuple(
            Step(step=n, status="done", owner="Ada", evidence=(f"memo {n}",))
            for n in range(1, 11)
            if n not in left_open
        )
    )


def override(*steps: int) -> Override:
    return Override(steps=steps, by="Grace", reason="deadline set by statute", at=NOON)


def test_the_eleven_steps_and_their_items_are_those_of_the_book() -> None:
    assert [d.number for d in STEPS] == list(range(1, 12))
    assert [len(d.items) for d in STEPS] == [4, 1, 2, 2, 4, 1, 2, 2, 4, 6, 2]
    assert tuple(d.number for d in STEPS if d.mandatory) == (*MANDATORY, 11)


def test_a_starter_checklist_is_refused_and_every_mandatory_step_named() -> None:
    with pytest.raises(Refusal) as caught:
        gate(Checklist.starter())
    assert caught.value.exit_code == 3
    for number in MANDATORY:
        assert f"{number} ({STEPS[number - 1].title})" in caught.value.problem
    assert STEPS[2].title not in caught.value.problem
    assert STEPS[10].title not in caught.value.problem


@pytest.mark.parametrize("number", MANDATORY)
def test_one_open_mandatory_step_is_enough_to_refuse(number: int) -> None:
    with pytest.raises(Refusal) as caught:
        gate(settled(number))
    named = [d.number for d in STEPS if f"{d.number} ({d.title})" in caught.value.problem]
    assert named == [number]


def test_optional_steps_do_not_hold_a_release_up_but_are_reported() -> None:
    assert gate(settled(3, 4)) == Passage(optional=(3, 4))
    assert "Optional steps left open: communication strategy" in gate(settled(3)).sentence()
    assert gate(settled()) == Passage()


def test_a_plan_may_make_a_step_mandatory_and_never_the_reverse() -> None:
    strict = Checklist(steps=(*settled(3).steps[:2], Step(step=3, mandatory=True), *settled(3).steps[3:]))
    with pytest.raises(Refusal, match="Communication strategy"):
        gate(strict)
    with pytest.raises(InputError) as caught:
        Step(step=7, mandatory=False)
    assert "override" in caught.value.expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"status": "done", "evidence": ("memo",)}, "owner"),
        ({"status": "done", "owner": " ", "evidence": ("memo",)}, "owner"),
        ({"status": "done", "owner": "Ada"}, "evidence"),
        ({"status": "done", "owner": "Ada", "evidence": (" ",)}, "evidence"),
        ({"status": "not applicable", "owner": "Ada"}, "reason"),
        ({"status": "done", "owner": "Ada", "evidence": ("m",), "items": {"a": {"status": "open"}}}, "item"),
        ({"items": {"z": {"status": "done"}}}, "items among a"),
    ],
)
def test_a_step_is_settled_by_somebody_on_evidence(fields: dict[str, object], expected: str) -> None:
    with pytest.raises(InputError) as caught:
        Step.read({"step": 2, **fields})
    assert expected in caught.value.expected


@pytest.mark.parametrize("definition", STEPS, ids=lambda d: d.title)
def test_only_waivable_steps_can_be_declared_not_applicable(definition: object) -> None:
    number = definition.number  # type: ignore[attr-defined]
    fields = {"step": number, "status": "not applicable", "owner": "Ada", "reason": "no such duty"}
    if number in {2, 3, 4, 5, 6}:
        assert Step.read(fields).settled
    else:
        with pytest.raises(InputError):
            Step.read(fields)


def test_an_item_that_does_not_apply_says_why() -> None:
    assert Answer(status="not applicable", note="a census has no sample").status == "not applicable"
    with pytest.raises(InputError):
        Answer(status="not applicable")


def test_steps_are_closed_in_order() -> None:
    checklist = Checklist.starter({"curator": "Ada", "owner": "Bo", "allocator": "Cy", "analyst": "Di"})
    with pytest.raises(Refusal, match=r"step 5 waits for 1 .*, 2 "):
        checklist.close(5, evidence=["memo"])
    checklist = checklist.close(1, evidence=["codebook"]).close(2, reason="no data are stored")
    assert checklist.step(2).status == "not applicable"
    assert checklist.step(1).owner == "Ada"
    checklist = checklist.close(5, evidence=["minutes"])  # 3 and 4 are optional
    assert [s.step for s in checklist.blocking()] == [6, 7, 8, 9, 10]
    with pytest.raises(UnknownName):
        checklist.close(12, evidence=["memo"])


def test_a_plan_file_that_settles_steps_too_early_is_told_so() -> None:
    assert [s.step for s in settled(7).out_of_order()] == [8, 9, 10]
    with pytest.raises(Refusal) as caught:
        gate(settled(7))
    assert "8 (Privacy risk)" in caught.value.hint
    assert settled().out_of_order() == ()


def returned(to: int, *left_open: int) -> Checklist:
    """A way back from step 10, as a plan records it: owner and evidence stay, the steps are open again."""
    steps = [
        step.record() | ({"status": "open"} if step.step >= to else {})
        for step in settled(*left_open).steps
        if step.step not in left_open
    ]
    taken = {"to": to, "by": "Di", "reason": "error too large for small areas", "at": NOON.isoformat()}
    return Checklist.read({"steps": steps, "returns": [taken]})


def test_the_loop_from_step_10_opens_the_gate_only_when_all_is_settled_again_and_is_remembered() -> None:
    back = returned(8)
    assert [s.step for s in back.blocking()] == [8, 9, 10]
    assert back.step(8).evidence == ("memo 8",)
    assert [(r.to, r.by) for r in back.returns] == [(8, "Di")]
    with pytest.raises(Refusal):
        gate(back)
    again = back.close(8, evidence=["new memo"]).close(9, evidence=["x"]).close(10, evidence=["y"])
    assert gate(again) == Passage()
    assert again.returns == back.returns


@pytest.mark.parametrize("to", [0, 10, 11])
def test_the_loop_leads_to_an_earlier_step_only(to: int) -> None:
    with pytest.raises(InputError):
        returned(to)


def test_an_override_opens_the_gate_for_the_named_steps_alone() -> None:
    passage = gate(settled(6, 8), override(6, 8))
    assert passage.overridden == (6, 8)
    assert passage.override == override(6, 8)
    assert "OVERRIDE" in passage.sentence()
    assert "Grace" in passage.sentence()
    assert "deadline set by statute" in passage.sentence()
    with pytest.raises(Refusal) as caught:
        gate(settled(6, 8), override(6))
    assert "8 (Privacy risk)" in caught.value.problem
    assert "6 (Regulations)" not in caught.value.problem


def test_an_override_that_was_not_needed_is_not_recorded_as_one() -> None:
    passage = gate(settled(), override(6))
    assert passage.override is None
    assert "OVERRIDE" not in passage.sentence()


@pytest.mark.parametrize(
    "fields",
    [
        {"by": " "},
        {"reason": ""},
        {"steps": []},
        {"steps": [6, 6]},
        {"steps": [11]},
        {"steps": [0]},
        {"at": "2026-03-01T12:00:00"},
    ],
)
def test_an_override_is_answered_for(fields: dict[str, object]) -> None:
    good = {"steps": [6], "by": "Grace", "reason": "statute", "at": "2026-03-01T12:00:00Z"}
    assert Override.read(good).at == NOON
    with pytest.raises(InputError):
        Override.read(good | fields)


def test_a_passage_is_read_back_as_it_was_recorded() -> None:
    passage = gate(settled(3, 6), override(6))
    assert Passage.read(passage.record()) == passage
    assert passage.record()["override"]["by"] == "Grace"


def test_a_checklist_of_an_earlier_release_is_not_used_again() -> None:
    done = settled().released(gate(settled()), owner="Ada", evidence=["ledger entry"])
    assert done.step(11).settled
    with pytest.raises(Refusal, match="already made"):
        gate(done)


def test_step_11_is_settled_after_an_override_and_not_without_one() -> None:
    passage = gate(settled(6), override(6))
    assert settled(6).released(passage, owner="Ada", evidence=["ledger entry"]).step(11).settled
    with pytest.raises(Refusal):
        settled(6).released(Passage(), owner="Ada", evidence=["ledger entry"])


def test_yaml_of_the_starter_is_the_starter() -> None:
    text = starter_yaml(indent=2)
    assert Checklist.read(yaml.safe_load(text)) == Checklist.starter()
    for definition in STEPS:
        assert all(item in text for item in definition.items)


def test_records_leave_out_what_says_nothing_and_read_back() -> None:
    assert Checklist.starter().record() == {}
    checklist = returned(9, 4)
    assert [s["step"] for s in checklist.record()["steps"]] == [1, 2, 3, 5, 6, 7, 8, 9, 10]
    assert Checklist.read(checklist.record()) == checklist
    assert Checklist.read(yaml.safe_load(yaml.safe_dump(checklist.record()))) == checklist


@pytest.mark.parametrize("numbers", [[2, 1], [1, 1], [0], [12]])
def test_steps_come_once_and_in_order(numbers: list[int]) -> None:
    with pytest.raises(InputError):
        Checklist.read({"steps": [{"step": n} for n in numbers]})


def test_an_unknown_key_is_named_with_its_neighbour() -> None:
    with pytest.raises(InputError) as caught:
        Step.read({"step": 1, "ownr": "Ada"})
    assert "owner" in caught.value.hint

"""The self-test: kill rate and false alarms, on a few exhibits quickly and on all of them slowly."""

from __future__ import annotations

from dataclasses import replace

import pytest

import stirred.museum.examination as module
from stirred.audit import Finding, Verdict
from stirred.errors import UnknownName
from stirred.museum import Exhibit, collected, self_test
from stirred.museum.examination import Examined, SelfTest

PUBLISHED = 22
OWN = {
    "pairwise-swaps",
    "wrong-b",
    "fixed-number-of-swaps",
    "biased-derangement",
    "input-order",
    "rates-of-both",
    "peeking-post-processing",
    "missing-invariant",
    "replace-one-as-add-remove",
    "threshold-mass",
    "broadcast-keys",
    "shared-sample",
}
SURVEY = {"float-noise", "truncated-gaussian", "seed-reuse"}


def test_the_museum_shows_what_it_must():
    shown = collected()
    assert set(shown) >= OWN | SURVEY
    assert len(shown) >= PUBLISHED + len(OWN)
    rooms = module.collected.__wrapped__()
    assert len(rooms) == len(shown)


def test_keys_are_not_used_twice():
    from stirred.museum import accounting, black_box, keys, noise, sensitivity, swapping, topdown, units

    listed = [
        exhibit.key
        for room in (sensitivity, noise, accounting, keys, swapping, topdown, units, black_box)
        for exhibit in room.EXHIBITS
    ]
    assert len(listed) == len(set(listed)) == len(collected())


def test_some_exhibits_in_processes_of_their_own():
    found = self_test(["double-spending", "black-box-scale"], seed=3)
    assert found.passed and found.kills == 2 and found.runs == 2
    record = found.record()
    assert record["kill_rate"] == 1 and record["false_alarms"] == 0
    assert [one["key"] for one in record["examined"]] == ["double-spending", "black-box-scale"]
    assert "2 of 2" in found.sentence


def test_an_unknown_exhibit_is_refused():
    with pytest.raises(UnknownName):
        self_test(["no-such-thing"])


def _finding(verdict):
    return Finding("exact", "x", verdict, "s")


def test_a_bug_that_is_missed_in_one_batch_is_not_killed():
    killed = Examined("k", "t", "s", _finding(Verdict.VIOLATED), 50, 0, 1.0)
    missed = replace(killed, broken=_finding(Verdict.NOT_REFUTED))
    joined = module._joined([killed, missed, killed])
    assert not joined.killed and joined.runs == 150
    assert not SelfTest((joined,), 1.0).passed


def test_a_false_alarm_fails_the_test():
    one = Examined("k", "t", "s", _finding(Verdict.VIOLATED), 50, 1, 1.0)
    assert SelfTest((replace(one, false_alarms=0),), 1.0).passed
    assert not SelfTest((one,), 1.0).passed


def test_an_audit_that_blames_everything_is_counted(monkeypatch):
    """A worker counts a false alarm for every twin that is refuted, and notices a bug that is missed."""
    blame = Exhibit("blame", "t.", "s", lambda broken, source: _finding(Verdict.VIOLATED), random=True)
    sleep = Exhibit("sleep", "t.", "s", lambda broken, source: _finding(Verdict.NOT_REFUTED))
    monkeypatch.setattr(module, "collected", lambda: {"blame": blame, "sleep": sleep})
    assert module._examine(("blame", 0, 7, 1)).false_alarms == 7
    assert not module._examine(("sleep", 0, 1, 1)).killed
    assert len(list(module._tasks(["blame", "sleep"], 1000, 1))) == 21


@pytest.mark.slow
def test_every_bug_is_killed_and_no_twin_is_blamed_in_a_thousand_runs():
    found = self_test(full=True, seed=6)
    assert [one.key for one in found.examined if not one.killed] == []
    assert [one.key for one in found.examined if one.false_alarms] == []
    assert found.runs >= 9 * 1000

"""The quick way to the books gives the books: sums for compositions, what is known for what is read again."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger.common import MANIFEST, NEIGHBOURS, approximate, desk, flavor, gaussian, make, plan, pure, zcdp
from ledger.test_tampering import attack, forge, plant, stored

from stirred.errors import InvalidBudget, NewerSchema
from stirred.ledger import Drawing, Equal, Group, Head, Ledger, Sample, SqliteStorage, TamperedLedger, chain
from stirred.ledger.account import _part
from stirred.ledger.accountant import Part, Sum, Tally, _composed, carried, tally
from stirred.ledger.amount import Amount
from stirred.ledger.books import Books
from stirred.ledger.canonical import canonical, digest
from stirred.ledger.chain import FORMAT, Entry, Row, follow, inspect, unchanged
from stirred.ledger.changed import changed
from stirred.ledger.events import Spent, write
from stirred.spec import Budget, Renyi, Specification, catalogue

HERE = Drawing("/office/out", {"households": "a" * 64})


def replayed(ledger: Ledger) -> Books:
    """The twin: all entries from the first, one after the other, on empty books."""
    books = Books()
    for entry in ledger.events():
        books = books.after(entry)
    return books


def test_books_kept_by_several_ledgers_in_turn_are_those_of_a_full_replay(tmp_path: Path) -> None:
    make(tmp_path, pure(100), zcdp(100), pure(100))
    ledgers = [Ledger.open(tmp_path / "ledger.db") for _ in range(4)]
    ledgers[0].allocate("c", Equal(["Di", "Ed"]), by="Cy")
    chance = random.Random(4)
    paid = []
    for step in range(60):
        ledger = chance.choice(ledgers)
        act = chance.randrange(6)
        if act < 3:
            dataset = chance.choice("ab")
            price = pure(f"{chance.randint(1, 9)}/100")
            seed = hashlib.sha256(str(step).encode()).hexdigest()
            paid.append(ledger.spend(dataset, price, plan(), by="Ben", period=f"{step % 3}", seed=seed))
        elif act == 3:
            who = chance.choice(["Di", "Ed"])
            paid.append(ledger.spend("c", pure("1/7"), plan(), by=who, analyst=who))
        elif paid:
            spend = paid.pop(chance.randrange(len(paid)))
            if act == 4:
                ledger.finish(spend, MANIFEST, by="Ben")
            else:
                paid.append(ledger.resume(spend.dataset, spend.plan, by="Ben"))
    for ledger in ledgers:
        assert ledger._read() == replayed(ledger)
    assert ledgers[0].verify().ok
    assert len({ledger.head() for ledger in ledgers}) == 1


def renyi(epsilon: object) -> Specification:
    return flavor(Renyi(alpha=2)).with_budget(Budget.epsilon(epsilon))


def worded(specification: Specification, chance: random.Random) -> Specification:
    said = chance.sample(["a", "b", "c"], chance.randint(0, 2))
    standing = chance.choice(["proved", "enumerated", "published", "uncertified", "unstated"])
    return Specification(**dict(specification) | {"assumptions": tuple(said), "standing": standing})


CEILINGS = {
    "pure": (pure(50), lambda c: pure(c.choice(["1/3", "ln(3)", "0", "sqrt(2)"]))),
    "zcdp": (zcdp(50), lambda c: c.choice([zcdp("1/7"), zcdp("ln(2)"), pure("1/2")])),
    "gaussian": (gaussian(50), lambda c: gaussian(c.choice(["1/3", "sqrt(2)", "ln(3)"]))),
    "approximate": (approximate(50, "1/2"), lambda c: approximate(c.choice(["1/3", "ln(3)"]), "1/100")),
    "renyi": (renyi(50), lambda c: c.choice([renyi("1/3"), pure("1/4")])),
    "infinite": (pure("inf"), lambda c: pure(c.choice(["1/3", "inf"]))),
}


@pytest.mark.parametrize("kind", CEILINGS)
@pytest.mark.parametrize("seed", range(3))
def test_a_sum_of_amounts_is_the_composition_of_the_releases(kind: str, seed: int) -> None:
    """Word for word: amount, premetric, assumptions in their order and standing, after every release."""
    ceiling, draw = CEILINGS[kind]
    chance, under = random.Random(seed), ceiling.flavor
    quick, slow, parts = Tally(under), None, []
    for _ in range(7):
        part = carried(worded(draw(chance), chance), under, None, None)
        parts.append(part)
        assert quick.adds(part)
        together = quick.amount() + part.amount
        quick = quick.plus(part)
        slow = _composed([s for s in (slow, part.specification) if s is not None], under)
        assert isinstance(quick.direct, Sum)
        assert quick.amount() == together
        assert quick.specification() == slow
        assert quick.amount() == Amount.of(slow) == tally(parts, under).amount()
        assert quick.specification().record() == slow.record()


def test_from_a_policy_on_releases_are_composed_and_not_added() -> None:
    swap = catalogue.specification("psa-2020-county")
    under = swap.flavor
    plain = under.with_budget(Budget.epsilon("1/3"))
    quick, slow = Tally(under), None
    for step, release in enumerate((plain, plain, swap, plain, swap)):
        part = carried(release, under, None, None)
        assert quick.adds(part) is (step < 2)
        quick = quick.plus(part)
        slow = _composed([s for s in (slow, part.specification) if s is not None], under)
        assert quick.specification() == slow
        assert quick.amount() == Amount.of(slow)
    assert isinstance(quick.direct, Specification)
    assert Part(plain, Sample(name="s", rate="1/2", design="poisson")).summand is None


def test_a_sum_beyond_all_meaning_is_refused_when_it_is_spent() -> None:
    ledger = desk(pure("inf"))
    large = pure(6 * 10**99)
    ledger.spend("a", large, plan(), by="Ben")
    head = ledger.head()
    with pytest.raises(InvalidBudget, match="too large"):
        ledger.spend("a", large, plan(), by="Ben")
    assert ledger.head() == head
    assert ledger.verify().ok


def test_a_changed_row_is_another_specification_whatever_was_read_before(tmp_path: Path) -> None:
    """What is known by its text cannot be had by another text: neither a release nor a ceiling."""
    ledger = make(tmp_path, pure(1))
    ledger.spend("a", pure("1/4"), plan(), by="Ben")
    storage = SqliteStorage(tmp_path / "ledger.db")
    assert str(Ledger(storage).remaining("a").budget) == "ε = 0.75"
    rows = stored(ledger)

    def dearer(body: dict) -> None:
        body["event"]["specification"]["budget"]["amounts"] = ["1/2"]

    def lower(body: dict) -> None:
        body["event"]["ceiling"]["budget"]["amounts"] = ["1/3"]

    for event, change, left in ((6, dearer, "ε = 0.5"), (5, lower, "ε = 0.0834")):
        plant(tmp_path, forge(rows, event, change))
        assert str(Ledger(storage).remaining("a").budget) == left
    texts = [json.dumps(pure(e).record(), sort_keys=True) for e in ("1/4", "1/2")]
    parts = [_part(text, texts[0], None, None) for text in (*texts, *texts)]
    assert [str(part.specification.budget) for part in parts] == ["ε = 0.25", "ε = 0.5"] * 2
    assert parts[0] is parts[2]


def rows() -> list[Row]:
    book = desk(pure(1))
    for _ in range(3):
        book.spend("a", pure("0.3"), plan(), by="Ben")
    return list(book._storage.kept)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_unchanged_means_followed_before_to_the_same_head(data: st.DataObject) -> None:
    kept = rows()
    head = Head(kept[-1].sequence, kept[-1].hash)
    assert unchanged(kept, head)
    assert unchanged(kept, Head(kept[4].sequence, kept[4].hash))
    index = data.draw(st.integers(0, len(kept) - 1))
    row, column = kept[index], data.draw(st.sampled_from(["body", "hash", "sequence"]))
    if column == "sequence":
        kept[index] = row._replace(sequence=row.sequence + 1)
    else:
        text = getattr(row, column)
        place = data.draw(st.integers(0, len(text) - 1))
        letter = data.draw(st.characters(codec="ascii").filter(lambda c: c != text[place]))
        kept[index] = row._replace(**{column: text[:place] + letter + text[place + 1 :]})
    assert not unchanged(kept, head)


def test_rewritten_cut_moved_or_doubled_rows_are_not_unchanged() -> None:
    kept = rows()
    head = Head(kept[-1].sequence, kept[-1].hash)

    def later(body: dict) -> None:
        body["at"] = "2099-01-01T00:00:00.000000+00:00"

    forged = forge(kept, 3, later)
    assert len(list(follow(forged))) == len(kept), "a true chain of another history"
    for other in (forged, kept[:-1], kept[1:], [*kept[:2], *kept[1:]], kept[::-1], []):
        assert not unchanged(other, head)


@pytest.mark.parametrize("event", [0, 3, 5])
def test_whoever_seals_finds_an_edit_of_any_event_also_of_one_read_long_ago(
    tmp_path: Path, event: int
) -> None:
    ledger = make(tmp_path, pure(1))
    spend = ledger.spend("a", pure("0.1"), plan(1), by="Ben", drawing=HERE)
    attack(
        tmp_path, f'UPDATE event SET body = replace(body, \'"at":"2\', \'"at":"3\') WHERE sequence = {event}'
    )
    for act in (
        lambda: ledger.spend("a", pure("0.1"), plan(2), by="Ben", drawing=HERE),
        lambda: ledger.resume("a", plan(1), by="Ben", drawing=HERE),
        lambda: ledger.drawing(spend),
    ):
        with pytest.raises(TamperedLedger, match=f"event {event} was edited"):
            act()


def written(entry: Entry) -> str:
    """The twin of an entry's text: the whole of it as plain data, written at once."""
    by = {"name": entry.name, "role": entry.role}
    place = {"format": FORMAT, "sequence": entry.sequence, "previous": entry.previous}
    return canonical({"at": entry.at, "by": by, "event": write(entry.event), **place})


def history() -> list[Row]:
    """Every kind of term that a release can have, and names that look like the text around them."""
    ledger = desk(pure(100), pure(100), pure(100, NEIGHBOURS))
    odd = 'é,"specification":{"a":1}},"format":1\\'
    ledger.appoint(odd, "curator", "analyst", by="Ada")
    ledger.allocate("b", Equal(["Di", odd]), by="Cy")
    ledger.spend("a", pure("1/7"), plan(), by=odd, period=odd)
    ledger.spend("a", pure("ln(3)"), plan(), by="Ben", seed=plan(), group=Group(factor="2", because=odd))
    shared = Sample(name=odd, rate="1/2", design="simple-random")
    ledger.spend("c", pure("1/7", NEIGHBOURS), plan(), by="Ben", sample=shared)
    ledger.spend("b", pure("1/7"), plan(), by=odd, analyst=odd)
    ledger.finish(ledger.spend("b", pure("1/7"), plan(), by="Di", analyst="Di"), MANIFEST, by="Ben")
    ledger.non_private_step("a", odd, odd, by="Ben")
    return list(ledger._storage.kept)


def test_an_entry_that_was_read_is_written_as_its_twin_and_its_row_is_the_stored_one() -> None:
    kept = history()
    for entry, row in zip(follow(kept), kept, strict=True):
        fresh = dataclasses.replace(entry)
        assert entry.body() == fresh.body() == written(entry) == row.body
        assert entry.row() == fresh.row() == row
        if isinstance(entry.event, Spent):
            assert entry.event.text == canonical(entry.event.specification)


def test_entries_that_are_read_share_nothing_that_can_be_changed() -> None:
    kept = history()
    one, other = (next(e.event for e in follow(kept) if isinstance(e.event, Spent)) for _ in range(2))
    one.specification["budget"]["amounts"] = ["0"]
    again = next(e.event for e in follow(kept) if isinstance(e.event, Spent))
    assert other == again != one


PIECES = [
    *(',"specification":', '},"format":1', "{}", "[]", "null", "NaN", "1e999", " ", ",", "}", "{", '"', "\\"),
    *("\\ud800", '"specification":{},', ',"specification":{}', '"Ben"', "true", "1", "1.0", "-0", '["Ben"]'),
]


_HISTORY = history()


def judged(row: Row, after: Head) -> tuple[Entry | None, list[str]]:
    try:
        [(entry, findings)] = inspect([row], after)
    except NewerSchema as error:
        return None, [error.problem]
    return entry, [str(finding) for finding in findings]


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_a_row_is_judged_as_if_no_text_of_a_specification_were_known(data: st.DataObject) -> None:
    """Any part of a text replaced by another, with a true hash: the findings are those of the slow way."""
    kept = _HISTORY
    index = data.draw(st.integers(1, len(kept) - 1))
    body, previous = kept[index].body, kept[index - 1]
    edges = [place for place, letter in enumerate(body) if letter in '{}[],:"']
    start, end = sorted(data.draw(st.tuples(*[st.sampled_from(edges)] * 2)))
    end = data.draw(st.sampled_from([start, start + 1, end, end + 1]))
    body = body[:start] + data.draw(st.sampled_from([*PIECES, ""])) + body[end:]
    row, after = Row(index, body, digest(body)), Head(previous.sequence, previous.hash)
    quick, findings = judged(row, after)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chain, "specification_in", lambda _: None)
        slow, expected = judged(row, after)
    assert findings == expected
    if quick is not None and any("canonical" in finding for finding in findings):
        with contextlib.suppress(UnicodeEncodeError):  # the twin cannot write half a letter
            assert written(quick) != body
    if quick is not None and not findings:
        assert quick == slow
        assert quick.row() == row == Row(index, written(quick), digest(written(quick)))
        if isinstance(quick.event, Spent):
            assert quick.event.text == canonical(quick.event.specification)


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ('"1/7"', "NaN", "edited"),
        ('"1/7"', "1e999", "edited"),
        ('"1/7"', '"\\ud800"', "edited"),
        ('"name":"Ben"', '"name":"\\ud800"', "edited"),
        ('"name":"Ben"', '"name":NaN', "unreadable"),
        ('"name":"Ben"', '"name":["Ben"]', "unreadable"),
        ('"role":"curator"', '"role":{}', "unreadable"),
    ],
)
def test_what_has_no_canonical_text_or_is_no_name_is_found_and_not_raised(
    old: str, new: str, kind: str
) -> None:
    ledger = desk(pure(1))
    ledger.spend("a", pure("1/7"), plan(), by="Ben")
    *before, row = ledger._storage.kept
    assert old in row.body
    body = row.body.replace(old, new)
    *_, (_, findings) = inspect([*before, Row(row.sequence, body, digest(body))])
    assert [finding.kind for finding in findings] == [kind]


def test_a_changed_record_is_a_replaced_one() -> None:
    ledger = desk(pure(1))
    spend = ledger.spend("a", pure("1/7"), plan(), by="Ben")
    books = ledger._read()
    for record, fields in (
        (books, {"key": "k"}),
        (books.account("a"), {"name": "z", "tainted": ("x",)}),
        (spend, {"attempt": 7}),
    ):
        before = dict(vars(record))
        assert changed(record, **fields) == dataclasses.replace(record, **fields)
        assert vars(record) == before
        assert set(before) == {field.name for field in dataclasses.fields(record)}
        assert not any(isinstance(v, functools.cached_property) for v in vars(type(record)).values())
        with pytest.raises(TypeError, match="no such field"):
            changed(record, unknown=1)

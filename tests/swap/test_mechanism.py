"""The mechanism: guarantee, release, invariants, order, identifiers, persons, refusals."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats
from support.protocol import guaranteed
from support.releasing import TRIAL, reason_of, try_swap

from stirred.errors import InputError, Refusal, StirredError, UnknownName
from stirred.noise import TestSource
from stirred.release import trial_of
from stirred.spec import Exact, Schema, Specification, evaluate, swapping_loss
from stirred.spec.protocol import Mechanism
from stirred.swap import ExperimentalSwap, PermutationSwap, Records, VariableRate, tighter_loss, verify
from stirred.swap.loss import variable_rate_loss

ALPHA = 1e-6


def households(count: int = 400, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "id": rng.permutation(count) + 1000,
            "state": rng.integers(0, 2, count),
            "county": [f"c{v}" for v in rng.integers(0, 5, count)],
            "size": rng.integers(1, 4, count),
            "owner": rng.integers(0, 2, count).astype(bool),
            "income": rng.integers(0, 20, count),
        }
    )


def swapper(**fields: object) -> PermutationSwap:
    given: dict[str, object] = {"match": ("state", "size"), "swap": ("county",), "rate": "0.3"}
    return PermutationSwap(**given | fields)  # type: ignore[arg-type]


def named(**fields: object) -> PermutationSwap:
    """Files are written of named columns alone."""
    return swapper(**{"hold": ("owner", "income")} | fields)


def counts(frame: pl.DataFrame, names: tuple[str, ...]) -> Counter[tuple[object, ...]]:
    return Counter(frame.select(names).rows())


def test_it_is_a_mechanism() -> None:
    assert isinstance(swapper(), Mechanism)


def test_proposition_4_both_tables_are_kept_and_the_interior_moves() -> None:
    frame = households()
    out = swapper().release(Records.of(frame, id="id"), TestSource(1)).products["households"]
    for names in (("state", "size", "owner", "income"), ("state", "size", "county")):
        assert counts(frame, names) == counts(out, names)
    assert counts(frame, ("county", "owner", "income")) != counts(out, ("county", "owner", "income"))


def test_the_saturated_table_is_the_multiset_of_the_output() -> None:
    products = swapper().release(Records.of(households(), id="id"), TestSource(1)).products
    table = products["table"]
    names = tuple(c for c in table.columns if c != "count")
    assert counts(products["households"], names) == {row[:-1]: row[-1] for row in table.rows()}


def test_theorem_1_is_the_guarantee_and_the_same_throughout_a_universe() -> None:
    frame = households()
    mechanism = swapper()
    first = guaranteed(mechanism, Records.of(frame, id="id"))
    largest = frame.group_by("state", "size").len()["len"].max()
    assert first.budget.amount == swapping_loss(int(largest), "0.3")
    assert first.standing == "proved"
    for seed in range(3):
        other = mechanism.release(Records.of(frame, id="id"), TestSource(seed)).products["households"]
        assert guaranteed(mechanism, Records.of(other, id="id")) == first


def test_the_largest_stratum_counts_only_strata_with_two_distinct_records() -> None:
    frame = pl.DataFrame({"m": [1] * 5 + [2] * 3, "h": [0] * 5 + [0, 1, 0], "s": [7] * 5 + [1, 1, 2]})
    psa = PermutationSwap(match=("m",), swap=("s",), rate="1/2")
    assert guaranteed(psa, frame).budget.amount == Exact.log(4)
    constant = frame.filter(pl.col("m") == 1)
    assert guaranteed(psa, constant).budget.amount == Exact.of(0)


def test_a_mechanism_alone_makes_trials_and_a_test_seed_is_said_besides() -> None:
    seeded, fresh = (swapper().release(households().drop("id"), source) for source in (TestSource(1), None))
    for made in (seeded, fresh):
        assert not made.publishable
        with pytest.raises(Refusal, match="not paid for in a ledger: a trial"):
            made.require_publishable()
    assert "test seed" in seeded.reason
    assert "test seed" not in fresh.reason


def test_the_compiled_path_has_the_exact_law_of_the_twin() -> None:
    frame = pl.DataFrame({"m": [0, 0, 0, 0, 1, 1], "h": [0, 0, 1, 2, 0, 1], "s": [0, 1, 2, 2, 0, 1]})
    psa = PermutationSwap(match=("m",), swap=("s",), rate="2/5")
    exact = psa.outcomes(psa.prepare(frame))
    assert sum(exact.values()) == 1
    prepared = psa.prepare(Records.of(frame))
    runs, seen = 8_000, Counter[object]()
    h, s = frame["h"].to_list(), frame["s"].to_list()
    m = frame["m"].to_list()
    root = TestSource(42)
    for run in range(runs):
        donors = psa.donors(prepared, root.child(run))
        seen[tuple(sorted(((m[i],), (h[i],), (s[donors[i]],)) for i in range(6)))] += 1
    keys = sorted(exact, key=repr)
    assert set(seen) <= set(keys)
    observed = [seen[k] for k in keys]
    expected = [float(exact[k]) * runs for k in keys]
    assert stats.chisquare(observed, expected).pvalue > ALPHA


def test_row_order_and_identifiers_carry_no_trace_of_the_input() -> None:
    """Permuting the input rows leaves the law of the first output row unchanged."""
    frame = pl.DataFrame({"id": [11, 12, 13, 14], "h": [0, 1, 2, 3], "s": [0, 1, 2, 3]})
    psa = PermutationSwap(match=(), swap=("s",), rate="1/2")
    tables = []
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        firsts = Counter[int]()
        for seed in range(400):
            out = psa.release(Records.of(frame[order], id="id"), TestSource(seed)).products["households"]
            assert out["id"].to_list() == [0, 1, 2, 3]
            firsts[out["h"][0]] += 1
        tables.append([firsts[h] for h in range(4)])
    for table in tables:
        assert stats.chisquare(table).pvalue > ALPHA
    assert stats.chi2_contingency(np.array(tables)).pvalue > ALPHA


def test_persons_follow_their_household_with_new_identifiers() -> None:
    frame = households(60)
    persons = pl.DataFrame(
        {
            "id": np.repeat(frame["id"].to_numpy(), frame["size"].to_numpy()),
            "county": np.repeat(frame["county"].to_numpy(), frame["size"].to_numpy()),
        }
    ).with_row_index("tag")
    persons = persons.with_columns(household_tag=pl.col("id"))
    tagged = frame.with_columns(household_tag=pl.col("id"))
    psa = swapper(hold=("owner", "income", "household_tag"))
    out = psa.release(Records.of(tagged, persons, "id"), TestSource(3)).products
    homes, people = out["households"], out["persons"]
    assert homes["id"].to_list() == list(range(60))
    joined = people.join(homes, on="id", suffix="_home")
    assert (joined["county"] == joined["county_home"]).all()
    assert (joined["household_tag"] == joined["household_tag_home"]).all()
    assert people.height == persons.height
    assert people["id"].is_sorted()
    assert sorted(people["tag"].to_list()) == sorted(persons["tag"].to_list())


def test_imputed_records_stay_and_are_an_invariant() -> None:
    frame = households(300).with_columns(imputed=pl.Series(np.arange(300) % 3 == 0))
    psa = swapper(imputed="imputed")
    out = psa.release(Records.of(frame, id="id"), TestSource(5))
    names = tuple(c for c in frame.columns if c != "id")
    before = counts(frame.filter("imputed"), names)
    assert counts(out.products["households"].filter("imputed"), names) == before
    sizes = frame.filter(~pl.col("imputed")).group_by("state", "size").len()["len"]
    assert out.specification.budget.amount == swapping_loss(int(sizes.max()), "0.3")
    assert len(out.specification.multiverse.invariants) == 3
    table = out.specification.multiverse.invariants[2]
    assert evaluate(table, frame).equals(evaluate(table, out.products["households"]))
    assert evaluate(table, frame)["value"].sum() == 100
    assert any("not" in text and "covered" in text for text in out.specification.assumptions)


def test_variable_rates_have_the_loss_of_their_worst_stratum() -> None:
    frame = households()
    rates = VariableRate.of(("owner",), {True: "0.1", False: "0.6"}, "0.5")
    spec = guaranteed(swapper(rate=rates), Records.of(frame, id="id"))
    sizes = frame.group_by("state", "size").len()["len"]
    assert spec.budget.amount == variable_rate_loss([(int(n), "0.1", "0.6") for n in sizes])
    by_place = VariableRate.of(("county",), {"c0": "0.2"}, "0.4")
    assert guaranteed(swapper(rate=by_place), Records.of(frame, id="id")).standing == "proved"


def test_a_rate_that_looks_at_both_sides_or_elsewhere_is_refused() -> None:
    records = Records.of(households(), id="id")
    joint = VariableRate.of(("owner", "county"), {(True, "c0"): "0.2"}, "0.4")
    with pytest.raises(Refusal, match="at once"):
        guaranteed(swapper(rate=joint), records)
    outside = VariableRate.of(("risk",), {1: "0.2"}, "0.4")
    with pytest.raises(Refusal, match="no role"):
        guaranteed(swapper(rate=outside), records)
    with pytest.raises(InputError, match="strictly between"):
        VariableRate.of(("owner",), {True: "0"}, "0.4")


def test_the_tighter_loss_is_offered_beside_theorem_1() -> None:
    records = Records.of(households(), id="id")
    tight = guaranteed(swapper(loss="tighter"), records)
    default = guaranteed(swapper(), records)
    assert tight.budget.amount < default.budget.amount
    assert tight.standing == "proved"
    size = households().group_by("state", "size").len()["len"].max()
    assert tight.budget.amount == tighter_loss(int(size), "0.3")


def test_missing_values_are_an_error_or_a_level() -> None:
    frame = (
        households(50)
        .drop("id")
        .with_columns(county=pl.when(pl.col("income") < 4).then(None).otherwise("county"))
    )
    with pytest.raises(InputError) as caught:
        swapper().release(frame, TestSource(1))
    assert caught.value.field == "county"
    out = swapper(missing="level").release(frame, TestSource(1)).products["households"]
    assert out["county"].null_count() == frame["county"].null_count()


def test_the_report_says_what_is_exact_and_where_nothing_is_protected() -> None:
    frame = pl.DataFrame({"m": [1, 2, 2, 3, 3, 3], "h": [0, 0, 1, 5, 5, 5], "s": [1, 1, 2, 1, 2, 3]})
    report = PermutationSwap(match=("m",), swap=("s",), rate="1/2").prepare(frame).report
    assert (report.strata, report.singletons, report.constant) == (3, 1, 1)
    assert (report.exposure.determined, report.exposure.exposed) == (4, 6)
    assert (report.hold_cells, report.swap_cells) == (4, 6)
    text = " ".join(report.sentences())
    assert "Every combination of h is published exactly" in text
    assert "may be published" in text


def test_a_column_of_very_many_levels() -> None:
    count = 200_000
    frame = pl.DataFrame(
        {"h": np.arange(count), "s": np.arange(count)[::-1].copy(), "m": np.arange(count) // 4}
    )
    out = PermutationSwap(match=("m",), swap=("s",), rate="1/2").release(frame, TestSource(2))
    assert out.products["households"].height == count


@pytest.mark.parametrize(
    ("fields", "error", "word"),
    [
        ({"match": ("state", "county")}, InputError, "two roles"),
        ({"hold": ("owner", "size")}, InputError, "two roles"),
        ({"match": ("nowhere",)}, UnknownName, "nowhere"),
        ({"swap": ()}, InputError, "variables to move"),
        ({"hold": ()}, InputError, "variables to move"),
        ({"rate": "0"}, Refusal, "infinite loss"),
        ({"rate": "1"}, Refusal, "infinite loss"),
        ({"rate": "1.5"}, InputError, "not a probability"),
        ({"imputed": "income"}, InputError, "not usable"),
        ({"nesting": (("owner", "county"),)}, InputError, "would move while owner stays"),
        ({"nesting": (("county", "owner"),)}, InputError, "would move while owner stays"),
        ({"nesting": (("county", "state"),)}, InputError, "lies in several"),
        ({"nesting": (("income", "county"),)}, InputError, "would move"),
    ],
)
def test_bad_roles_are_refused_before_anything_is_drawn(
    fields: dict[str, object], error: type[StirredError], word: str
) -> None:
    with pytest.raises(error, match=word):
        swapper(**fields).release(households().drop("id"), TestSource(1))


def test_bad_tables_are_refused() -> None:
    frame = households(20)
    with pytest.raises(InputError, match="empty"):
        Records.of(frame.head(0))
    with pytest.raises(InputError, match="repeated"):
        Records.of(pl.concat([frame, frame]), id="id")
    with pytest.raises(InputError, match="no household"):
        Records.of(frame, pl.DataFrame({"id": [1]}), "id")
    with pytest.raises(InputError, match="identifier"):
        Records.of(frame, pl.DataFrame({"id": [1]}))
    with pytest.raises(UnknownName):
        Records.of("no/such/file.parquet")


def test_infinite_loss_is_possible_only_on_request() -> None:
    spec = guaranteed(swapper(rate="1", allow_infinite_loss=True), households().drop("id"))
    assert spec.budget.amount.is_infinite


def test_files_one_for_each_place_complete_or_not_at_all(tmp_path: Path) -> None:
    frame = households(500)
    source = tmp_path / "in.parquet"
    frame.write_parquet(source)
    done = try_swap(named(), source, tmp_path / "out", by="state", id="id", random=TestSource(1))
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"internal", "manifest.json"}
    made_in = tmp_path / "out" / "internal"
    assert {p.name for p in made_in.rglob("*.parquet")} == {"state=0.parquet", "state=1.parquet"}
    parts = [pl.read_parquet(made_in / "microdata" / f"state={i}.parquet") for i in (0, 1)]
    assert [part["state"].unique().to_list() for part in parts] == [[0], [1]]
    back = pl.concat(parts)
    names = ("state", "size", "county")
    assert counts(back, names) == counts(frame, names)
    text = (made_in / "specification.json").read_text(encoding="utf-8")
    assert Specification.from_json(text) == done.specification
    with pytest.raises(InputError, match="exists already"):
        try_swap(named(), source, tmp_path / "out", by="state", id="id")
    assert {p.name for p in tmp_path.iterdir()} == {"in.parquet", "out"}


def test_an_interrupt_leaves_no_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    households(150).write_parquet(tmp_path / "in.parquet")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("stirred.swap.arrangement.verify", interrupted)
    with pytest.raises(KeyboardInterrupt):
        try_swap(named(), tmp_path / "in.parquet", tmp_path / "out", by="state", id="id")
    assert {p.name for p in tmp_path.iterdir()} == {"in.parquet"}
    monkeypatch.undo()
    try_swap(named(), tmp_path / "in.parquet", tmp_path / "out", by="state", id="id")
    assert (tmp_path / "out").is_dir()


def test_a_swapping_place_can_name_the_files(tmp_path: Path) -> None:
    frame = households(300)
    frame.write_parquet(tmp_path / "in.parquet")
    done = try_swap(named(), tmp_path / "in.parquet", tmp_path / "out", by="county", id="id")
    parts = {p.name: pl.read_parquet(p) for p in (tmp_path / "out" / "internal" / "microdata").iterdir()}
    assert set(parts) == {f"county=c{number}.parquet" for number in range(5)}
    for name, part in parts.items():
        assert {f"county={place}.parquet" for place in part["county"]} == {name}
        assert part["id"].to_list() == list(range(part.height))
    assert sum(part.height for part in parts.values()) == 300
    assert not done.publishable and reason_of(done) == TRIAL


def test_rates_are_read_exactly() -> None:
    assert guaranteed(swapper(rate=0.3), households().drop("id")) == guaranteed(
        swapper(rate=Fraction(3, 10)), households().drop("id")
    )


def test_what_is_known_of_persons_is_held_and_stated() -> None:
    frame = households(60)
    persons = pl.DataFrame({"id": frame["id"], "age": np.arange(60), "county": frame["county"]})
    psa = swapper()
    spec = guaranteed(psa, Records.of(frame, persons, "id"))
    assert "person_age" in spec.multiverse.invariants[0].by
    assert "person_county" not in spec.multiverse.invariants[0].by
    largest = frame.group_by("state", "size").len()["len"].max()
    assert spec.budget.amount == swapping_loss(int(largest), "0.3")


def test_a_place_that_only_persons_have_is_refused() -> None:
    frame = households(60)
    persons = pl.DataFrame({"id": frame["id"], "block": np.arange(60)})
    with pytest.raises(InputError, match="would not move"):
        guaranteed(swapper(nesting=(("block", "county"),)), Records.of(frame, persons, "id"))


def test_persons_make_equal_households_distinct() -> None:
    """Two equal household records with different persons can be told apart, so their stratum counts."""
    frame = pl.DataFrame({"id": [1, 2], "h": [0, 0], "s": [5, 5]})
    psa = PermutationSwap(match=(), swap=("s",), rate="1/2")
    assert guaranteed(psa, Records.of(frame, id="id")).budget.amount.is_zero
    persons = pl.DataFrame({"id": [1, 2], "age": [3, 30]})
    assert guaranteed(psa, Records.of(frame, persons, "id")).budget.amount == Exact.log(3)


def test_a_source_used_twice_gives_fresh_draws() -> None:
    source = TestSource(1)
    runs = [swapper().release(households().drop("id"), source).products["households"] for _ in range(2)]
    assert not runs[0].equals(runs[1])


def test_what_an_uncertified_law_makes_is_not_publishable_and_no_plan_has_one() -> None:
    roles = {"match": ("state",), "swap": ("county",), "hold": ("owner", "income"), "rate": "0.3"}
    swap = ExperimentalSwap(**roles, law="no-vacuous")
    made = swap.release(households(150).drop("id"))
    assert not made.publishable and "not certified" in made.reason
    with pytest.raises(Refusal, match="not certified"):
        made.require_publishable()
    with pytest.raises(InputError, match="unknown key law"):
        trial_of({"kind": "swap", "households": "in.parquet", "law": "no-vacuous", **roles})


def test_persons_and_one_file_a_place_do_not_mix(tmp_path: Path) -> None:
    frame = households(150)
    frame.write_parquet(tmp_path / "a.parquet")
    frame.select("id", age=pl.col("income")).write_parquet(tmp_path / "b.parquet")
    files = {"id": "id", "persons": tmp_path / "b.parquet", "hold_persons": ["age"]}
    with pytest.raises(InputError, match="one file") as caught:
        try_swap(named(), tmp_path / "a.parquet", tmp_path / "out", by="state", **files)
    assert caught.value.field == "by"
    assert {p.name for p in tmp_path.iterdir()} == {"a.parquet", "b.parquet"}


def test_a_killed_run_leaves_no_output_and_can_be_run_again(tmp_path: Path) -> None:
    households(150).write_parquet(tmp_path / "in.parquet")
    script = (
        "import os, signal, sys; from pathlib import Path; sys.path.insert(0, sys.argv[3]); "
        "from stirred.swap import PermutationSwap, arrangement; from support.releasing import try_swap; "
        "arrangement.verify = lambda *_: os.kill(os.getpid(), signal.SIGKILL); "
        "swap = PermutationSwap(match=('state', 'size'), swap=('county',), hold=('income',), rate='0.3'); "
        "try_swap(swap, sys.argv[1], Path(sys.argv[2]), by='state', id='id')"
    )
    places = (tmp_path / "in.parquet", tmp_path / "out", Path(__file__).parent.parent)
    call = [sys.executable, "-c", script, *map(str, places)]
    assert subprocess.run(call, check=False).returncode == -signal.SIGKILL
    assert not (tmp_path / "out").exists()
    try_swap(named(), tmp_path / "in.parquet", tmp_path / "out", by="state", id="id")
    assert (tmp_path / "out" / "manifest.json").is_file()
    assert {p.name for p in tmp_path.iterdir()} == {"in.parquet", "out"}


def test_a_codebook_refuses_values_outside_its_levels_and_shows_none() -> None:
    frame = households().drop("id")
    levels = {
        "state": range(2),
        "county": [f"c{i}" for i in range(5)],
        "size": (1, 2, 3),
        "owner": None,
        "income": None,
    }
    spec = guaranteed(swapper(codebook=Schema.of(**levels)), frame)
    assert spec.domain.record_schema.codebook()["size"] == (1, 2, 3)
    with pytest.raises(InputError) as caught:
        guaranteed(swapper(codebook=Schema.of(**levels | {"county": ("c0", "c1")})), frame)
    assert caught.value.field == "county"
    assert "c4" not in str(caught.value)
    with pytest.raises(UnknownName):
        guaranteed(swapper(codebook=Schema.of(state=(0, 1))), frame)


def test_the_report_names_what_is_known_of_persons() -> None:
    frame = households(60)
    persons = pl.DataFrame({"id": frame["id"], "age": np.arange(60)})
    sentence = swapper().prepare(Records.of(frame, persons, "id")).report.sentences()[1]
    assert "person_age" in sentence
    assert "with their persons" in sentence


@pytest.mark.parametrize("by", ["owner", "id"])
def test_a_column_without_a_role_cannot_split_the_output(tmp_path: Path, by: str) -> None:
    households(150).write_parquet(tmp_path / "in.parquet")
    with pytest.raises(InputError, match="no role"):
        try_swap(swapper(hold=("income",)), tmp_path / "in.parquet", tmp_path / "out", by=by, id="id")
    assert {p.name for p in tmp_path.iterdir()} == {"in.parquet"}


@pytest.mark.parametrize("count", [300, 250_000])
def test_numbers_that_are_not_numbers_are_values_like_others(count: int) -> None:
    """NaN equals itself in the recount of the invariants, in small tables and in large ones."""
    frame = (
        households(count)
        .drop("id")
        .with_columns(
            income=pl.when(pl.col("income") < 3).then(float("nan")).otherwise(pl.col("income") * 1.5)
        )
    )
    out = swapper().release(frame, TestSource(1)).products["households"]
    assert out["income"].is_nan().sum() == frame["income"].is_nan().sum()


@pytest.mark.parametrize("count", [300, 250_000])
def test_a_broken_output_is_caught_before_it_is_written(count: int) -> None:
    frame = households(count).drop("id")
    prepared = swapper().prepare(Records.of(frame))
    verify(prepared, frame.sample(fraction=1, shuffle=True, seed=1))
    for name, value in (("owner", ~pl.col("owner")), ("county", pl.lit("c0"))):
        changed = pl.when(pl.int_range(pl.len()) == 7).then(value).otherwise(pl.col(name)).alias(name)
        broken = frame.with_columns(changed)
        if not broken.equals(frame):
            with pytest.raises(Refusal, match="do not keep"):
                verify(prepared, broken)

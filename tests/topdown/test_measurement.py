"""Measurements: the law of the noise in place, what is measured where, the files and their refusals."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2
from support.spines import Row, Twin, leaf_rows, spine_of
from support.strategies import reproducibly

from stirred.data import Histogram, Spine, levels_of
from stirred.errors import InputError
from stirred.noise import RandomSource, TestSource, gaussian_cdf
from stirred.spec import Attribute, Recode, Schema
from stirred.topdown import Allocation, Cells, Design, Measurements, measurement
from stirred.topdown.measurement import measure

ALPHA = 1e-6
SCHEMA = Schema(
    attributes=(
        Attribute(name="sex", levels=("f", "m")),
        Attribute(name="age", levels=(0, 1, 2, 3, 4)),
        Attribute(name="kind", levels=tuple("abcdef")),
    ),
    recodes=(Recode(name="adult", attribute="age", groups={"no": (0, 1), "yes": (2, 3, 4)}),),
)
CELLS = Cells(SCHEMA)
LEVELS = ("nation", "county", "tract", "block")
QUERIES = {
    "nation": {"detailed": "1/3", "total": "2/3"},
    "county": {"sex": "1/2", "kind * adult": "1/2"},
    "tract": {"detailed": "3/4", "sex": "1/4"},
    "block": {"detailed": "4/5", "age": "1/5"},
}
SHARES = {"nation": "1/8", "county": "1/4", "tract": "1/8", "block": "1/2"}


def geography() -> Spine:
    """30 counties: of one block, of one tract, of four tracts (the first of one block)."""
    rows = []
    for county in range(30):
        kind = county % 3
        for tract, blocks in enumerate(([1], [20], [1, 6, 6, 6])[kind]):
            for block in range(blocks):
                code = f"{county:02d}{tract}{block:02d}"
                rows.append(("us", code[:2], code[:3], code))
    return Spine.from_columns(pl.DataFrame(rows, schema=list(LEVELS), orient="row"), LEVELS)


def design_of(rho: object = "1/10", spine: Spine | None = None) -> Design:
    return Design(CELLS, spine or geography(), Allocation.of(CELLS, rho, SHARES, QUERIES))


def truth_of(design: Design, seed: int = 1, highest: int = 6) -> tuple[Histogram, ...]:
    size = design.spine.size(design.spine.depth - 1)
    table = np.random.default_rng(seed).integers(0, highest, (size, design.cells.count))
    nodes, cells = np.nonzero(table)
    leaves = Histogram.of_counts(nodes, cells, table[nodes, cells], size, design.cells.count)
    return levels_of(leaves, design.spine)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "CHUNK", 2000)


def answers(design: Design, truth: tuple[Histogram, ...], level: int, query: str) -> np.ndarray:
    """The true answers of all nodes of a level, count by count."""
    groups = design.cells.query(query).groups
    table = truth[level].dense(0, truth[level].nodes)
    size = design.cells.query(query).size
    return np.stack([table[:, groups == g].sum(axis=1) for g in range(size)], axis=1)


def noises(
    made: Measurements, truth: tuple[Histogram, ...]
) -> Iterator[tuple[tuple[int, str, int], Fraction, int, np.ndarray]]:
    """Noisy less true by (level, query, reach), with the exact variance and the chunk's number."""
    design = made.design
    for level in range(design.spine.depth):
        true = {name: answers(design, truth, level, name) for name in design.queries(level)}
        for number, chunk in enumerate(made.level(level)):
            nodes = design.measured[level][chunk.start : chunk.stop]
            for name, table in chunk.values.items():
                for reach in np.unique(design.reach[level][nodes]):
                    rows = design.reach[level][nodes] == reach
                    variances = design.allocation.variances(LEVELS[level : reach + 1])
                    if name in variances:
                        noise = table[rows] - true[name][nodes[rows]]
                        yield (level, name, int(reach)), variances[name], number, noise
                    else:
                        assert not table[rows].any()


def gathered(made: Measurements, truth: tuple[Histogram, ...]) -> dict[tuple[int, str, int], Any]:
    out: dict[tuple[int, str, int], Any] = {}
    for key, variance, _, noise in noises(made, truth):
        out.setdefault(key, (variance, []))[1].append(noise.ravel())
    return {key: (variance, np.concatenate(parts)) for key, (variance, parts) in out.items()}


def p_value(noise: np.ndarray, variance: Fraction) -> float:
    """Pearson's test against the exact law, in cells of at least 8 expected draws."""
    widest = 8 * int(np.sqrt(float(variance)) + 1)
    below = [float(gaussian_cdf(variance, k)) for k in range(-widest, widest + 1)]
    edges: list[int] = []
    last = 0.0
    for k, mass in zip(range(-widest, widest + 1), below, strict=True):
        if (mass - last) * noise.size >= 8 and (1 - mass) * noise.size >= 8:
            edges.append(k)
            last = mass
    inside = np.array([below[k + widest] for k in edges])
    expected = np.diff(inside, prepend=0.0, append=1.0) * noise.size
    found = np.bincount(np.searchsorted(edges, noise, side="left"), minlength=expected.size)
    return float(chi2.sf(((found - expected) ** 2 / expected).sum(), expected.size - 1))


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("rho", ["1/10", 4])
def test_the_noise_of_every_measurement_has_the_exact_law(rho: object) -> None:
    design = design_of(rho)
    truth = truth_of(design)
    found = gathered(measure(design, truth, TestSource(3)), truth)
    assert {key[0] for key in found} == {0, 1, 2, 3}
    assert {key[2] for key in found if key[0] == 1} == {1, 2, 3}
    assert {key[2] for key in found if key[0] == 2} == {2, 3}
    for key, (variance, noise) in found.items():
        if noise.size >= 60:
            assert p_value(noise, variance) > ALPHA, key
        assert abs(noise.mean()) < 6 * np.sqrt(float(variance) / noise.size), key


def test_a_wrong_law_would_be_noticed() -> None:
    design = design_of()
    truth = truth_of(design)
    variance, noise = gathered(measure(design, truth, TestSource(3)), truth)[3, "detailed", 3]
    assert noise.size == 380 * 60
    assert p_value(noise, variance) > ALPHA
    for wrong in (noise + 1, np.rint(noise * 1.1), np.rint(noise * 0.9), np.abs(noise), noise * 0):
        assert p_value(wrong, variance) < ALPHA


@pytest.mark.usefixtures("small_chunks")
def test_no_noise_is_used_twice() -> None:
    """With noise so wide that draws hardly coincide, no five draws in a row are met again anywhere."""
    design = design_of(Fraction(1, 10**13))
    truth = truth_of(design)
    seen: set[tuple[int, ...]] = set()
    count, chunks = 0, set()
    for (level, _, _), _, number, noise in noises(measure(design, truth, TestSource(3)), truth):
        chunks.add((level, number))
        flat = noise.ravel().tolist()
        runs = [tuple(flat[i : i + 5]) for i in range(len(flat) - 4)] or [tuple(flat)]
        count += len(runs)
        seen |= set(runs) | {tuple(-x for x in run) for run in runs}
    assert len(chunks) > 20
    assert len(seen) == 2 * count


@pytest.mark.usefixtures("small_chunks")
def test_streams_are_uncorrelated() -> None:
    """Between levels, chunks and queries from their first draw on, and between neighbouring nodes and counts.

    Magnitudes as well: the same words would give them in other scales and with other signs.
    """
    design = design_of()
    truth = truth_of(design)
    by_query: dict[str, list[np.ndarray]] = {}
    beginnings = []
    for (level, name, _), _, _, noise in noises(measure(design, truth, TestSource(3)), truth):
        if noise.size >= 100:
            beginnings.append(noise.ravel()[:100])
        if level == 3:
            by_query.setdefault(name, []).append(noise)
    assert len(beginnings) > 25
    for draws in (np.array(beginnings), np.abs(beginnings)):
        between = np.corrcoef(draws) - np.eye(len(beginnings))
        assert np.abs(between).max() < 0.6
    tables = {name: np.concatenate(parts).astype(np.float64) for name, parts in by_query.items()}
    detailed, age = tables["detailed"], tables["age"]
    pairs = [
        (detailed[:, :-1], detailed[:, 1:]),
        (detailed[:-1], detailed[1:]),
        (detailed[:-20], detailed[20:]),
        (detailed[:, :5], age),
        (detailed.reshape(-1)[: age.size], age.reshape(-1)),
    ]
    for one, other in pairs:
        correlation = np.corrcoef(one.ravel(), other.ravel())[0, 1]
        assert abs(correlation) < 5 / np.sqrt(one.size)


@pytest.mark.usefixtures("small_chunks")
def test_noise_does_not_depend_on_the_data() -> None:
    design = design_of()
    one, other = truth_of(design, 1), truth_of(design, 2, highest=400)
    first = gathered(measure(design, one, TestSource(3)), one)
    second = gathered(measure(design, other, TestSource(3)), other)
    assert all(np.array_equal(first[key][1], second[key][1]) for key in first | second)
    third = gathered(measure(design, one, TestSource(4)), one)
    wide = [key for key in first if first[key][1].size > 50]
    assert wide and not any(np.array_equal(first[key][1], third[key][1]) for key in wide)


def test_one_source_gives_new_noise_at_every_call() -> None:
    design = design_of()
    truth, source = truth_of(design), TestSource(3)
    first, second = (gathered(measure(design, truth, source), truth) for _ in range(2))
    wide = [key for key in first if first[key][1].size > 50]
    assert wide and not any(np.array_equal(first[key][1], second[key][1]) for key in wide)


def test_counts_beyond_the_files_width_do_not_wrap() -> None:
    schema = Schema.of(sex=("f",))
    spine = Spine.from_prefixes(["a", "b"], {"leaf": 1})
    design = Design(Cells(schema), spine, Allocation.of(Cells(schema), 100, {"leaf": 1}, {"total": 1}))
    truth = Histogram.of_counts(np.array([0, 1]), np.array([0, 0]), np.array([2**31 + 9**3, 5]), 2, 1)
    values = measure(design, [truth], TestSource(1)).chunk(0, 0).values["total"]
    assert values[0, 0] == 2**31 - 1 and abs(int(values[1, 0]) - 5) < 5


@st.composite
def designs(draw: st.DrawFn) -> Design:
    """A ragged spine, and shares and queries at random for each of its levels."""
    rows: list[Row] = draw(leaf_rows(max_leaves=14).filter(lambda found: Twin(found).fault() is None))
    spine = spine_of(rows)
    weight = st.integers(1, 9)

    def shares(names: list[str]) -> dict[str, Fraction]:
        weights = [draw(weight) for _ in names]
        return {name: Fraction(w, sum(weights)) for name, w in zip(names, weights, strict=True)}

    asked = st.lists(
        st.sampled_from(["total", "sex", "age", "adult", "sex * kind", "detailed"]),
        min_size=1,
        max_size=4,
        unique=True,
    )
    queries = {level: shares(draw(asked)) for level in spine.levels}
    change = draw(st.sampled_from(["replace-one", "add-remove"]))
    rho = Fraction(draw(weight), draw(weight))
    return Design(CELLS, spine, Allocation.of(CELLS, rho, shares(list(spine.levels)), queries, change))


@reproducibly(150)
@given(designs())
def test_every_path_from_root_to_leaf_spends_exactly_the_total(design: Design) -> None:
    spine, allocation = design.spine, design.allocation
    for leaf in range(spine.size(spine.depth - 1)):
        spent, levels = Fraction(0), []
        for level in range(spine.depth):
            node = int(spine.ancestors(level)[leaf])
            if node in design.measured[level]:
                chain = design.chain(level, int(design.reach[level][node]))
                levels += chain
                variances = allocation.variances(chain)
                spent += sum(Fraction(allocation.squared_sensitivity) / (2 * v) for v in variances.values())
        assert spent == allocation.rho_squared
        assert tuple(levels) == spine.levels


@reproducibly(100)
@given(designs())
def test_nodes_with_the_same_leaves_are_measured_once(design: Design) -> None:
    spine = design.spine
    met: set[frozenset[int]] = set()
    for level in range(spine.depth):
        above = spine.ancestors(level)
        contents = [frozenset(np.flatnonzero(above == node).tolist()) for node in range(spine.size(level))]
        measured = set(design.measured[level].tolist())
        for node, content in enumerate(contents):
            assert (node in measured) == (content not in met)
        met |= set(contents)


@reproducibly(150)
@given(designs(), st.integers(1, 400))
def test_chunks_are_whole_families_and_cover_every_measured_node_once(design: Design, target: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measurement, "CHUNK", target)
        for level in range(design.spine.depth):
            chunks, nodes = design.chunks(level), design.measured[level]
            assert [i for start, stop in chunks for i in range(start, stop)] == list(range(nodes.size))
            family = design.spine.parents[level][nodes].tolist() if level else list(range(nodes.size))
            met = [set(family[start:stop]) for start, stop in chunks]
            assert all(not one & other for one, other in itertools.combinations(met, 2))
            for (start, stop), families in zip(chunks, met, strict=True):
                assert (stop - start) * design.width(level) <= target or len(families) == 1
            for (start, stop), _ in itertools.pairwise(chunks):
                assert (stop - start + family.count(family[stop])) * design.width(level) > target


@reproducibly(25)
@given(designs(), st.integers(1, 300))
def test_memory_and_files_hold_the_same(
    tmp_path_factory: pytest.TempPathFactory, design: Design, target: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measurement, "CHUNK", target)
        truth = truth_of(design)
        memory = measure(design, truth, TestSource(8))
        folder = tmp_path_factory.mktemp("measured")
        assert_same(memory, measure(design, truth, TestSource(8), folder / "direct"))
        memory.write(folder / "written")
        assert_same(memory, Measurements.read(design, folder / "written"))


def assert_same(one: Measurements, other: Measurements) -> None:
    for level in range(one.design.spine.depth):
        for a, b in zip(one.level(level), other.level(level), strict=True):
            assert (a.level, a.start, a.stop) == (b.level, b.start, b.stop)
            assert list(a.values) == list(b.values) == list(one.design.queries(level))
            for name in a.values:
                assert a.values[name].dtype == b.values[name].dtype == np.int32
                assert np.array_equal(a.values[name], b.values[name])


@pytest.mark.usefixtures("small_chunks")
def test_the_files_say_what_was_measured_and_how_precisely(tmp_path: Path) -> None:
    design = design_of()
    spine, allocation = design.spine, design.allocation
    made = measure(design, truth_of(design), TestSource(3), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "0-nation.parquet",
        "1-county.parquet",
        "2-tract.parquet",
        "3-block.parquet",
    ]
    for level, name in enumerate(LEVELS):
        path = tmp_path / f"{level}-{name}.parquet"
        metadata = pq.read_schema(path).metadata
        assert metadata[b"stirred.design"].decode() == design.digest
        assert metadata[b"stirred.level"].decode() == name
        assert b"discrete Gaussian" in metadata[b"stirred.law"]
        frame = pl.read_parquet(path)
        assert frame.schema == {
            "node": pl.String,
            "levels": pl.String,
            "query": pl.String,
            "variance": pl.String,
            "values": pl.List(pl.Int32),
        }
        rows = {(row["node"], row["query"]): row for row in frame.to_dicts()}
        assert len(rows) == frame.height == design.measured[level].size * len(design.queries(level))
        for chunk in made.level(level):
            for i, node in enumerate(design.measured[level][chunk.start : chunk.stop]):
                chain = design.chain(level, int(design.reach[level][node]))
                for query in design.queries(level):
                    row = rows[spine.codes[level][node], query]
                    assert row["levels"] == "+".join(chain)
                    assert row["values"] == chunk.values[query][i].tolist()
                    budget = sum(
                        (allocation.rho(at, query) for at in chain if query in allocation.queries[at]),
                        Fraction(0),
                    )
                    exact = None if row["variance"] is None else Fraction(row["variance"])
                    assert exact == (1 / budget if budget else None)


def test_an_only_child_is_not_measured_again_and_lends_its_budget(tmp_path: Path) -> None:
    design = design_of()
    measure(design, truth_of(design), TestSource(3), tmp_path)
    county = pl.read_parquet(tmp_path / "1-county.parquet").filter(pl.col("node") == "00")
    assert set(county["levels"]) == {"county+tract+block"}
    # 1/10 (1/8 3/4 + 1/2 4/5) for the detailed query; the county alone does not ask it.
    found = dict(zip(county["query"], county["variance"], strict=True))
    assert Fraction(found["detailed"]) == 1 / (Fraction(1, 10) * (Fraction(3, 32) + Fraction(4, 10)))
    assert Fraction(found["age"]) == 1 / (Fraction(1, 10) * Fraction(1, 10))
    assert Fraction(found["sex"]) == 1 / (Fraction(1, 10) * (Fraction(1, 8) + Fraction(1, 32)))
    plain = pl.read_parquet(tmp_path / "1-county.parquet").filter(pl.col("node") == "02")
    assert dict(zip(plain["query"], plain["variance"], strict=True))["age"] is None
    for name in ("2-tract", "3-block"):
        assert not pl.read_parquet(tmp_path / f"{name}.parquet")["node"].str.starts_with("00").any()
    assert design.precisions(1, 3)["age"] == pytest.approx(1 / 100)
    assert "age" not in design.precisions(1, 1)


def test_no_true_answer_is_in_the_files(tmp_path: Path) -> None:
    """Noise this wide hides every count; a node that does not measure a query has zeros, not the truth."""
    design = design_of(Fraction(1, 10**13))
    truth = truth_of(design, highest=50)
    measure(design, truth, TestSource(3), tmp_path)
    for level, name in enumerate(LEVELS):
        frame = pl.read_parquet(tmp_path / f"{level}-{name}.parquet")
        codes = list(design.spine.codes[level])
        unmeasured = 0
        for query in design.queries(level):
            true = answers(design, truth, level, query)
            for row in frame.filter(pl.col("query") == query).to_dicts():
                values = np.array(row["values"])
                if row["variance"] is None:
                    unmeasured += 1
                    assert not values.any()
                else:
                    assert (np.abs(values - true[codes.index(row["node"])]) > 0).all()
        assert (unmeasured > 0) == (level in (1, 2))


def test_a_level_of_only_children_has_an_empty_file(tmp_path: Path) -> None:
    spine = Spine.from_prefixes(["ab"], {"nation": 0, "county": 1, "tract": 2})
    shares = {"nation": "1/4", "county": "1/4", "tract": "1/2"}
    design = Design(CELLS, spine, Allocation.of(CELLS, 1, shares, {"sex": 1}))
    made = measure(design, truth_of(design), TestSource(3), tmp_path)
    assert [len(list(made.level(level))) for level in range(3)] == [1, 0, 0]
    assert pl.read_parquet(tmp_path / "2-tract.parquet").height == 0
    assert pl.read_parquet(tmp_path / "0-nation.parquet")["variance"].to_list() == ["1"]


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, OSError])
def test_interrupted_writing_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    design = design_of()
    truth = truth_of(design)
    whole = measurement._rows
    calls: list[int] = []

    def broken(design: Design, chunk: Any, schema: Any) -> Any:
        calls.append(chunk.level)
        if calls.count(3) == 3:
            raise error("in the middle of the blocks")
        return whole(design, chunk, schema)

    monkeypatch.setattr(measurement, "_rows", broken)
    with pytest.raises(InputError if error is OSError else error):
        measure(design, truth, TestSource(3), tmp_path)
    names = {"0-nation.parquet", "1-county.parquet", "2-tract.parquet"}
    assert {path.name for path in tmp_path.iterdir()} == names
    with pytest.raises(InputError, match="level block are missing"):
        Measurements.read(design, tmp_path)


@pytest.mark.usefixtures("small_chunks")
def test_a_folder_with_measurements_is_not_measured_into_again(tmp_path: Path) -> None:
    """Otherwise an interrupted second run could leave levels of two runs side by side."""
    design = design_of()
    truth = truth_of(design)
    measure(design, truth, TestSource(3), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match="has measurements already"):
        measure(design, truth, TestSource(4), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def other_designs() -> dict[str, Design]:
    schema = Schema(attributes=SCHEMA.attributes[:1], recodes=())
    smaller = geography().table().head(250)
    sex = Allocation.of(Cells(schema), "1/10", SHARES, {"sex": 1})
    moved = {**SHARES, "nation": "1/4", "county": "1/8"}
    unit = Allocation.of(CELLS, "1/10", SHARES, QUERIES, "add-remove")
    return {
        "budget": design_of("1/11"),
        "shares": Design(CELLS, geography(), Allocation.of(CELLS, "1/10", moved, QUERIES)),
        "unit": Design(CELLS, geography(), unit),
        "geography": design_of(spine=Spine.from_columns(smaller, LEVELS)),
        "schema": Design(Cells(schema), geography(), sex),
    }


@pytest.mark.parametrize("what", ["budget", "shares", "unit", "geography", "schema"])
def test_measurements_of_another_design_are_refused(tmp_path: Path, what: str) -> None:
    design = design_of()
    measure(design, truth_of(design), TestSource(3), tmp_path)
    other = other_designs()[what]
    assert other.digest != design.digest == design_of().digest
    with pytest.raises(InputError, match="another design"):
        Measurements.read(other, tmp_path)
    assert Measurements.read(design_of(), tmp_path).chunk(3, 0).values["age"].shape == (380, 5)


@pytest.mark.usefixtures("small_chunks")
def test_files_that_were_changed_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    design = design_of()
    measure(design, truth_of(design), TestSource(3), tmp_path)
    path = tmp_path / "3-block.parquet"
    table = pq.read_table(path)
    whole = path.read_bytes()
    pq.write_table(table, path)
    with pytest.raises(InputError, match="level block are cut into other chunks"):
        Measurements.read(design, tmp_path)
    path.write_bytes(whole)
    Measurements.read(design, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(measurement, "CHUNK", 1500)
        with pytest.raises(InputError, match="cut into other chunks"):
            Measurements.read(design, tmp_path)
    for broken in (whole[: len(whole) // 2], b"", b"PAR1" * 9):
        path.write_bytes(broken)
        with pytest.raises(InputError, match="level block cannot be read"):
            Measurements.read(design, tmp_path)
    pq.write_table(table.replace_schema_metadata({}), path)
    with pytest.raises(InputError, match="another design"):
        Measurements.read(design, tmp_path)
    path.unlink()
    with pytest.raises(InputError, match="level block are missing"):
        Measurements.read(design, tmp_path)


def test_only_measurements_made_with_real_randomness_are_publishable(tmp_path: Path) -> None:
    """The files remember it; one level made with a test seed is enough to lose it."""
    design = design_of()
    truth = truth_of(design)
    for name, source in (("real", RandomSource()), ("test", TestSource(3))):
        in_memory = measure(design, truth, source)
        in_files = measure(design, truth, source, tmp_path / name)
        assert in_memory.publishable == in_files.publishable == (name == "real")
    mixed = tmp_path / "real" / "2-tract.parquet"
    mixed.write_bytes((tmp_path / "test" / "2-tract.parquet").read_bytes())
    assert not Measurements.read(design, tmp_path / "real").publishable

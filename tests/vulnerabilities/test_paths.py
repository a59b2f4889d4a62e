"""Hostile names and places: nothing is written outside its folder, over another file, or open to others."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest
from support.release_case import TestSource, plan_of, write_case, write_plan
from support.releasing import report_of, run_release, try_swap, try_topdown
from support.tiny_plan import PLAN
from support.tiny_plan import write_plan as write_tiny

from stirred.errors import InputError
from stirred.interchange import write_atomically, write_csv, write_parquet
from stirred.places import (
    LONGEST_SLUG,
    clash,
    inside,
    make_private,
    private_folder,
    require_file,
    require_new,
    require_room,
    slug,
    slugs,
    whole_folder,
)
from stirred.release import Plan
from stirred.swap import PermutationSwap

HOSTILE = [
    "../evil", "../../evil", "/etc/evil", "..", ".", "", ".hidden", "a/b", "a\\b", "a\0b", "a\nb", "-rf",
    "x" * 5000, "ü" * 300, "\u202egnp", "con:", "a b", "~/x", "\ud800",
]  # fmt: skip


def files_in(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_slug_is_one_short_visible_name(name: str, tmp_path: Path) -> None:
    made = slug(name)
    assert made == slug(name) and made[0] not in ".-" and "/" not in made
    assert all(c.isalnum() or c in "_-=." for c in made)
    assert 0 < len(made.encode()) <= LONGEST_SLUG
    (inside(tmp_path, made)).write_text("", encoding="utf-8")
    assert files_in(tmp_path) == {made}


def test_slugs_keep_plain_names_and_tell_others_apart() -> None:
    plain = ["person", "block-group", "county=017", "a.b", "größe"]
    assert [slug(name) for name in plain] == plain
    assert len({slug(name) for name in HOSTILE}) == len(HOSTILE)
    names = ["a", "A", "a-2", "A-2", "ä", unicodedata.normalize("NFD", "ä"), "a/b", slug("a/b"), "ﬁ", "fi"]
    folded = [unicodedata.normalize("NFKC", one).casefold() for one in slugs(names)]
    assert len(set(folded)) == len(names)
    assert clash(["a", "b", "A"]) == "A" and clash(["a/b", slug("a/b")]) == slug("a/b")
    assert clash(["a", "b"]) is None


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "..", ".", "", "a/../../x", "link/x"])
def test_a_path_outside_its_folder_is_refused(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    with pytest.raises(InputError, match="outside its folder"):
        inside(folder, name)
    assert inside(folder, "tables/x.csv") == folder / "tables" / "x.csv"


def test_a_swap_table_named_with_dots_and_slashes_stays_in_its_folder(tmp_path: Path) -> None:
    """On a table of columns ``../../../evil`` and ``tenure`` files appeared beside the release."""
    evil = "../../../evil"
    write_case(tmp_path)
    homes = pl.read_parquet(tmp_path / "households.parquet").rename({"block": evil})
    homes.write_parquet(tmp_path / "households.parquet")
    plan = plan_of("swap", swap=[evil], tables=[f"{evil} * tenure"], persons=None)
    listed = [
        a | ({"name": evil} if a["name"] == "block" else {})
        for a in plan["mechanism"]["codebook"]["attributes"]
    ]
    plan["mechanism"]["codebook"] = {"attributes": listed}
    path = write_plan(tmp_path / "evil.yaml", plan)
    before = files_in(tmp_path)
    run_release(path, tmp_path / "deep" / "er" / "out", None, random=TestSource(1))
    new = files_in(tmp_path) - before
    assert new and all(
        name.startswith("deep/er/out/internal/") or name == "deep/er/out/manifest.json" for name in new
    )
    assert any("/tables/evil-tenure-" in name for name in new)


def test_topdown_units_and_levels_named_with_dots_and_slashes_stay_in_their_folder(tmp_path: Path) -> None:
    evil = "../../../evil"
    inner = tmp_path / "inner"
    inner.mkdir()
    path = write_tiny(inner, PLAN.replace("housing_unit", f"'{evil}'").replace("tract", f"'{evil}-tract'"))
    blocks = pl.read_parquet(inner / "blocks.parquet").rename({"tract": f"{evil}-tract"})
    blocks.write_parquet(inner / "blocks.parquet")
    try_topdown(path, tmp_path / "a" / "b" / "out", random=TestSource(1))
    found = {p for p in tmp_path.rglob("*") if p.is_file() and not p.is_relative_to(inner)}
    assert found and all(p.is_relative_to(tmp_path / "a" / "b" / "out") for p in found)
    assert sum("evil" in p.name for p in found) >= 5


@pytest.mark.parametrize("by", ["a/b", "../../evil", ".."])
def test_files_by_place_stay_in_their_folder(by: str, tmp_path: Path) -> None:
    values = ["../x", "A", "a", "/", "", "a b"] * 8
    frame = pl.DataFrame({by: values, "h": [i % 3 for i in range(48)]})
    frame.write_parquet(tmp_path / "in.parquet")
    swap = PermutationSwap(match=(), swap=(by,), hold=("h",), rate="1/2", nesting=())
    try_swap(swap, tmp_path / "in.parquet", tmp_path / "out", by=by, random=TestSource(1))
    written = [p for p in tmp_path.rglob("*.parquet") if p.name != "in.parquet"]
    assert len({p.name.casefold() for p in written}) == 6
    assert {p.parent for p in written} == {tmp_path / "out" / "internal" / "microdata"} and len(written) == 6
    assert {p.name for p in tmp_path.iterdir()} == {"in.parquet", "out"}
    assert {pl.read_parquet(p)[by].unique().item() for p in written} == set(values)


def test_names_of_files_by_place_do_not_tell_the_order_of_the_records(tmp_path: Path) -> None:
    """A place with an odd name was numbered in the order in which the records came."""
    made = []
    for turned in (False, True):
        places = ["north end", "south end", "east end"] * 9
        frame = pl.DataFrame({"place": places[::-1] if turned else places, "h": [0, 1, 2] * 9})
        frame.write_parquet(tmp_path / "in.parquet")
        swap = PermutationSwap(match=(), swap=("place",), hold=("h",), rate="1/2", nesting=())
        out = tmp_path / f"out-{turned}"
        try_swap(swap, tmp_path / "in.parquet", out, by="place", random=TestSource(1))
        files = [file["path"] for file in report_of(out)["files"] if file["kind"] == "microdata"]
        assert {f"internal/{file}" for file in files} == {f for f in files_in(out) if f.endswith(".parquet")}
        made.append([(f, pl.read_parquet(out / "internal" / f)["place"].unique().item()) for f in files])
    assert made[0] == made[1] and len(made[0]) == 3


@pytest.mark.parametrize(
    "tables", [["block * tenure", "block*tenure"], ["a-b * c", "a * b-c"], ["A * b", "a * B"]]
)
def test_swap_tables_that_would_share_a_file_are_refused_when_the_plan_is_read(tables: list[str]) -> None:
    with pytest.raises(InputError, match="is not valid") as error:
        Plan.read(plan_of("swap", tables=tables))
    assert "names of files" in str(error.value)


def test_topdown_tables_and_units_that_would_share_a_file_are_refused_when_the_plan_is_read() -> None:
    twice = [{"level": "block", "query": "sex"}] * 2
    with pytest.raises(InputError, match="names of files"):
        Plan.read(plan_of("topdown", tables=twice))
    unit = plan_of("topdown")["mechanism"]["units"]["person"]
    with pytest.raises(InputError, match="case and punctuation"):
        Plan.read(plan_of("topdown", units={"person": unit, "Person": unit}))


def test_what_compares_with_the_truth_is_closed_to_others(tmp_path: Path) -> None:
    old = os.umask(0o022)
    try:
        try_topdown(write_tiny(tmp_path), tmp_path / "out", random=TestSource(1))
    finally:
        os.umask(old)
    internal = tmp_path / "out" / "internal"
    paths = [internal, *internal.rglob("*")]
    assert any(p.is_file() for p in paths)
    assert {mode(p) for p in paths} == {0o700, 0o600}
    assert mode(tmp_path / "out") == 0o755


def test_a_folder_is_private_while_it_is_written_and_ordinary_afterwards(tmp_path: Path) -> None:
    old = os.umask(0o022)
    try:
        with whole_folder(tmp_path / "out") as part:
            assert mode(part) == 0o700
            (part / "public").mkdir()
            (part / "public" / "x").write_text("x", encoding="utf-8")
            private_folder(part / "internal")
            assert mode(part / "internal") == 0o700
            (part / "internal" / "y").write_text("y", encoding="utf-8")
    finally:
        os.umask(old)
    out = tmp_path / "out"
    assert (mode(out), mode(out / "public"), mode(out / "public" / "x")) == (0o755, 0o755, 0o644)
    assert (mode(out / "internal"), mode(out / "internal" / "y")) == (0o700, 0o600)
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_making_private_does_not_follow_links(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("x", encoding="utf-8")
    (tmp_path / "other").chmod(0o644)
    folder = private_folder(tmp_path / "internal")
    (folder / "link").symlink_to(tmp_path / "other")
    make_private(folder)
    assert mode(tmp_path / "other") == 0o644


def outputs(tmp_path: Path) -> dict[str, Path]:
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x", encoding="utf-8")
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    return {
        "a dangling link": tmp_path / "dangling",
        "under a dangling link": tmp_path / "broken" / "out",
        "under a file": tmp_path / "file" / "out",
        "a name that only its temporary neighbour makes too long": tmp_path / ("x" * 250),
        "a name too long": tmp_path / ("x" * 300),
        "a path too long": tmp_path.joinpath(*["x" * 200] * 19),
        "no name": Path(""),
        "the folder above": tmp_path / "new" / "..",
        "a null byte": tmp_path / "a\0b",
    }


KINDS = [
    "a dangling link", "under a dangling link", "under a file",
    "a name that only its temporary neighbour makes too long", "a name too long", "a path too long",
    "no name", "the folder above", "a null byte",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_an_output_that_cannot_be_written_is_refused_before_anything_is_drawn(
    kind: str, tmp_path: Path
) -> None:
    output = outputs(tmp_path)[kind]
    before = sorted(str(p) for p in tmp_path.rglob("*"))
    with pytest.raises(InputError):
        require_new(output)
    data = tmp_path / "data"
    data.mkdir()
    pl.DataFrame({"h": [0, 1] * 9, "c": [0, 1, 2] * 6}).write_parquet(data / "in.parquet")
    drawn: list[int] = []

    class Watched(TestSource):
        def spawn(self) -> TestSource:
            drawn.append(1)
            return super().spawn()

    swap = PermutationSwap(match=(), swap=("c",), hold=("h",), rate="1/2")
    with pytest.raises(InputError):
        try_swap(swap, data / "in.parquet", output, random=Watched(1))
    with pytest.raises(InputError):
        try_topdown(write_tiny(data), output, random=Watched(1))
    assert not drawn
    assert sorted(str(p) for p in tmp_path.rglob("*") if not p.is_relative_to(data)) == before


@pytest.mark.parametrize(
    "kind", ["a dangling link", "under a file", "a name too long", "no name", "a null byte"]
)
def test_a_file_that_cannot_be_written_is_refused(kind: str, tmp_path: Path) -> None:
    output = outputs(tmp_path)[kind]
    with pytest.raises(InputError):
        require_file(output)
    with pytest.raises(InputError):
        write_atomically(output, "text")
    with pytest.raises(InputError):
        require_file(tmp_path)
    assert not (tmp_path / "nowhere").exists()


def test_parents_that_were_made_to_try_are_removed(tmp_path: Path) -> None:
    require_new(tmp_path / "a" / "b" / "out", room=1)
    assert not list(tmp_path.iterdir())


def test_many_may_try_the_same_name_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: require_new(tmp_path / "a" / "b" / "out"), range(200)))
    assert not list(tmp_path.iterdir())


def test_too_little_room_is_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not enough room"):
        require_room(tmp_path / "out", 1 << 62)
    require_room(tmp_path / "out", 1 << 10)
    assert not list(tmp_path.iterdir())


LIMITED = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import polars as pl
from support.releasing import try_swap
from stirred.errors import InputError
from stirred.interchange import write_csv, write_parquet
from stirred.noise import TestSource
from stirred.places import require_new
from stirred.swap import PermutationSwap

place = Path(sys.argv[1])
rows = range(20000)
frame = pl.DataFrame({"c": [i * 7919 % 10007 for i in rows], "h": [i * 31 % 9001 for i in rows]})
frame.write_parquet(place / "in.parquet")
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
for write in (write_parquet, write_csv):
    try:
        write(frame, place / "out.file")
    except OSError as error:
        print(error.strerror)
(place / "out.file").unlink(missing_ok=True)
swap = PermutationSwap(match=(), swap=("c",), hold=("h",), rate="1/2", nesting=())
try:
    try_swap(swap, place / "in.parquet", place / "out", random=TestSource(1))
except InputError as error:
    print(error.problem)
print(sorted(p.name for p in place.iterdir()))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are those of POSIX")
def test_a_limit_on_the_size_of_files_is_refused_and_no_traceback(tmp_path: Path) -> None:
    """Under ``ulimit -f`` the writer raised an error of its own, after the records were swapped."""
    call = [sys.executable, "-c", LIMITED, str(tmp_path), str(Path(__file__).parent.parent)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "File too large",
        "File too large",
        "there is not enough room for the output",
        "['in.parquet']",
    ]


def test_an_error_of_the_writer_shows_no_value(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [["secret-value"]]})
    for write, path in ((write_csv, tmp_path / "x.csv"), (write_parquet, tmp_path / "no" / "x.parquet")):
        with pytest.raises(OSError, match=r"error|No such") as error:
            write(frame, path)
        assert "secret" not in str(error.value) and error.value.strerror

"""Nothing that a plan does not publish is ever seen: not in public files, not on the screen, not in a log."""

from __future__ import annotations

import logging
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from support.release_case import MECHANISMS, new_ledger, plan_of, write_case, write_plan
from support.releasing import run_release
from typer.testing import CliRunner

from stirred.cli.app import app
from stirred.errors import StirredError
from stirred.ledger import Ledger
from stirred.release import dry_run

both = pytest.mark.parametrize("mechanism", MECHANISMS)
TABLES = {"swap": ("households", "members"), "topdown": ("persons",)}
LEVEL = {"swap": "tenure", "topdown": "sex"}


@dataclass(frozen=True)
class Planted:
    """A word and a number that occur in confidential records alone, and a name that only a column has."""

    word: str
    number: int
    column: str

    @property
    def forms(self) -> tuple[str, ...]:
        return (self.word, str(self.number), f"{self.number:,}", self.column)


planted = st.builds(
    Planted,
    st.text("bcdfghjkmpqz", min_size=12, max_size=12).map(lambda t: f"Wq{t}"),
    st.integers(7_000_000_000, 7_999_999_999),
    st.text("bcdfghjkmpqz", min_size=12, max_size=12).map(lambda t: f"Cx{t}"),
)


def plant(folder: Path, mechanism: str, secret: Planted) -> None:
    """Sentinels in every column that the plan does not publish: identifiers, free text, numbers, bytes."""
    for name in TABLES[mechanism]:
        path = folder / f"{name}.parquet"
        frame = pl.read_parquet(path)
        row = pl.int_range(pl.len()).cast(pl.String)
        extra = {
            "remark": pl.lit(f"<b>{secret.word}</b> 'quoted', \"twice\" é ") + row,
            secret.column: pl.lit(secret.number, dtype=pl.Int64),
            "bytes": pl.lit(secret.word.encode()),
        }
        if "person_id" in frame.columns:
            extra["person_id"] = pl.lit(f"{secret.word}-p") + row
        if "household_id" in frame.columns:
            extra["household_id"] = pl.lit(f"{secret.word}-") + pl.col("household_id")
        frame.with_columns(**extra).write_parquet(path)


def words_in(path: Path) -> str:
    """Everything that can be read in a file: its bytes, and for Parquet its columns and cells."""
    text = path.read_bytes().decode("utf-8", "replace")
    if path.suffix == ".parquet":
        frame = pl.read_parquet(path)
        text += " ".join(frame.columns) + str(frame.rows())
    return f"{path.name} {text}"


def require_absent(secret: Planted, *texts: str, names: bool = True) -> None:
    for text in texts:
        for form in secret.forms if names else secret.forms[:-1]:
            assert form not in text


def require_public_clean(secret: Planted, folder: Path) -> int:
    paths = [p for p in folder.rglob("*") if p.is_file()]
    require_absent(secret, *map(words_in, paths))
    return len(paths)


@contextmanager
def heard(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Iterator[list[str]]:
    """What is written to the screen and to logs meanwhile."""
    said: list[str] = []
    caplog.clear()
    capfd.readouterr()
    with caplog.at_level(logging.DEBUG):
        yield said
    out, err = capfd.readouterr()
    said += [out, err, caplog.text]


quiet = settings(
    max_examples=1,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def test_the_search_finds_what_is_planted(tmp_path: Path) -> None:
    secret = Planted("Wqbcdfghjkmpqz", 7_123_456_789, "Cxbcdfghjkmpqz")
    case = write_case(tmp_path / "case")
    for mechanism in MECHANISMS:
        plant(case, mechanism, secret)
    for name in ("households", "members", "persons"):
        text = words_in(case / f"{name}.parquet")
        assert all(form in text for form in (secret.word, str(secret.number), secret.column))
        with pytest.raises(AssertionError):
            require_public_clean(secret, case)
    homes, people = (pl.read_parquet(case / f"{n}.parquet") for n in ("households", "members"))
    assert set(people["household_id"]) == set(homes["household_id"])


@both
@quiet
@given(secret=planted)
def test_a_release_shows_nothing_that_was_planted(
    mechanism: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], secret: Planted
) -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        case = write_case(place / "case")
        plant(case, mechanism, secret)
        plan, book = case / f"{mechanism}.yaml", place / "ledger.db"
        ledger = new_ledger(book, case, [mechanism])
        with heard(caplog, capfd) as said:
            for arguments in (
                ["check", str(plan)],
                ["run", str(plan), "--dry-run", "--ledger", str(book)],
                ["run", str(plan), "--dry-run", "--json"],
                ["run", str(plan), "--ledger", str(book), "--output", str(place / "out")],
                ["verify", str(place / "out"), "--ledger", str(book)],
                ["run", str(plan), "--ledger", str(book), "--output", str(place / "again")],
            ):
                result = CliRunner().invoke(app, ["release", *arguments])
                assert result.exit_code == (3 if "again" in arguments[-1] else 0), result.output
                said.append(result.output)
        require_absent(secret, *said, ledger.export())
        assert require_public_clean(secret, place / "out" / "public") > 8
        assert not (place / "again").exists()


def outside(column: str) -> Callable[[Path, str, Planted], None]:
    """The word as a value of a column that the plan publishes."""

    def spoil(folder: Path, mechanism: str, secret: Planted) -> None:
        path = folder / f"{TABLES[mechanism][0]}.parquet"
        name = LEVEL[mechanism] if column == "level" else column
        one = pl.int_range(pl.len()) == 5
        pl.read_parquet(path).with_columns(
            pl.when(one).then(pl.lit(secret.word)).otherwise(pl.col(name)).alias(name)
        ).write_parquet(path)

    return spoil


def other_type(folder: Path, mechanism: str, secret: Planted) -> None:
    path = folder / f"{TABLES[mechanism][0]}.parquet"
    pl.read_parquet(path).with_columns(pl.lit(secret.number).alias(LEVEL[mechanism])).write_parquet(path)


def a_list(folder: Path, mechanism: str, secret: Planted) -> None:
    path = folder / f"{TABLES[mechanism][0]}.parquet"
    frame = pl.read_parquet(path)
    values = pl.Series(LEVEL[mechanism], [[secret.word]] * frame.height)
    frame.with_columns(values).write_parquet(path)


def missing_value(folder: Path, mechanism: str, secret: Planted) -> None:
    path = folder / f"{TABLES[mechanism][0]}.parquet"
    name = LEVEL[mechanism]
    gone = pl.when(pl.int_range(pl.len()) > 3).then(pl.col(name)).alias(name)
    pl.read_parquet(path).with_columns(gone).write_parquet(path)


def absent_column(folder: Path, mechanism: str, secret: Planted) -> None:
    path = folder / f"{TABLES[mechanism][0]}.parquet"
    pl.read_parquet(path).drop(LEVEL[mechanism]).write_parquet(path)


def garbage(folder: Path, mechanism: str, secret: Planted) -> None:
    (folder / f"{TABLES[mechanism][0]}.parquet").write_bytes(f"PAR1{secret.word}{secret.number}PAR1".encode())


def ragged_csv(folder: Path, mechanism: str, secret: Planted) -> None:
    """A file with text where numbers began, and a row that is too long."""
    name = TABLES[mechanism][0]
    lines = [
        f"block,{LEVEL[mechanism]},n",
        *["111,f,1"] * 200,
        f"111,f,{secret.word}",
        f"1,2,3,{secret.number}",
    ]
    (folder / f"{name}.csv").write_text("\n".join(lines), encoding="utf-8")
    plan = plan_of(mechanism)
    if mechanism == "swap":
        plan["mechanism"] = plan["mechanism"] | {"households": f"{name}.csv"}
    else:
        unit = plan["mechanism"]["units"]["person"] | {"file": f"{name}.csv"}
        plan["mechanism"] = plan["mechanism"] | {"units": {"person": unit}}
    write_plan(folder / f"{mechanism}.yaml", plan)


def repeated_id(folder: Path, mechanism: str, secret: Planted) -> None:
    path = folder / "households.parquet"
    frame = pl.read_parquet(path)
    pl.concat([frame, frame.head(1)]).write_parquet(path)


def orphan(folder: Path, mechanism: str, secret: Planted) -> None:
    path = folder / "members.parquet"
    frame = pl.read_parquet(path)
    frame.with_columns(pl.lit(f"{secret.word}!").alias("household_id")).write_parquet(path)


def person_outside(folder: Path, mechanism: str, secret: Planted) -> None:
    path = folder / "members.parquet"
    pl.read_parquet(path).with_columns(pl.lit(secret.word).alias("sex")).write_parquet(path)


def no_room(folder: Path, mechanism: str, secret: Planted) -> None:
    (folder.parent / "out").mkdir()


SPOILED: dict[str, tuple[Callable[[Path, str, Planted], None], tuple[str, ...]]] = {
    "a level outside the codebook": (outside("level"), MECHANISMS),
    "a place outside the map": (outside("block"), MECHANISMS),
    "another type": (other_type, MECHANISMS),
    "a list": (a_list, MECHANISMS),
    "a missing value": (missing_value, MECHANISMS),
    "an absent column": (absent_column, MECHANISMS),
    "no table": (garbage, MECHANISMS),
    "a ragged file": (ragged_csv, MECHANISMS),
    "a repeated identifier": (repeated_id, ("swap",)),
    "a person without a household": (orphan, ("swap",)),
    "a person outside the codebook": (person_outside, ("swap",)),
    "an existing folder": (no_room, MECHANISMS),
}


CASES = [(mechanism, kind) for kind, (_, fits) in SPOILED.items() for mechanism in fits]


@pytest.mark.parametrize(("mechanism", "kind"), CASES)
@quiet
@given(secret=planted)
def test_a_failure_shows_nothing_that_was_planted(
    mechanism: str,
    kind: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    secret: Planted,
) -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        case = write_case(place / "case")
        ledger = new_ledger(place / "ledger.db", case, [mechanism])
        plant(case, mechanism, secret)
        SPOILED[kind][0](case, mechanism, secret)
        arguments = ["release", "run", str(case / f"{mechanism}.yaml"), "--ledger", str(place / "ledger.db")]
        with heard(caplog, capfd) as said:
            for extra in ([], ["--json"]):
                result = CliRunner().invoke(app, [*arguments, "--output", str(place / "out"), *extra])
                assert result.exit_code in {2, 3}, (result.exit_code, result.exception)
                said += [result.output, _trace(result.exception)]
            with pytest.raises(StirredError) as error:
                run_release(case / f"{mechanism}.yaml", place / "out", ledger)
            said += [str(error.value), repr(error.value), str(error.value.as_dict()), _trace(error.value)]
            said.append(_tried(case / f"{mechanism}.yaml", ledger))
        # A refusal may list the columns of a table to whoever misspelt one: names, never values.
        require_absent(secret, *said, ledger.export(), names=kind != "an absent column")
        assert not (place / "out" / "public").exists()
        assert not list(place.glob(".out*"))
        assert ledger.statement(ledger.datasets()[0]).spends == ()


def _trace(error: BaseException | None) -> str:
    return "" if error is None else "".join(traceback.format_exception(error))


def _tried(path: Path, ledger: Ledger) -> str:
    """What a dry run says, or how it fails."""
    try:
        return str(dry_run(path, ledger).record())
    except StirredError as error:
        return _trace(error)


@both
@quiet
@given(secret=planted)
def test_a_run_that_breaks_down_shows_nothing(
    mechanism: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], secret: Planted
) -> None:
    """The disk is full after the draw: the error says so, and nothing of the records."""

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device", secret.word)

    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        place = Path(name)
        case = write_case(place / "case")
        plant(case, mechanism, secret)
        ledger = new_ledger(place / "ledger.db", case, [mechanism])
        patch.setattr(pl.DataFrame, "write_csv", full)
        with heard(caplog, capfd) as said:
            with pytest.raises(StirredError) as error:
                run_release(case / f"{mechanism}.yaml", place / "out", ledger)
            said += [str(error.value), _trace(error.value)]
        require_absent(secret, *said, ledger.export())
        assert not (place / "out").exists()
        assert not list(place.glob(".out*"))

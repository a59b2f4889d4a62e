"""What commands print: one JSON object, or text for people; errors with their hint."""

from __future__ import annotations

import contextlib
import functools
import json
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec

import typer
from typer.exceptions import TyperException

from stirred.errors import StirredError

if TYPE_CHECKING:
    from stirred.spec import Card

P = ParamSpec("P")


def reported(command: Callable[P, None]) -> Callable[P, None]:
    """Turn a structured error into its message and its exit code, and any other into a fault.

    The text of an error that is not ours, and its traceback, may hold a value read from data: they stay in.
    """

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except StirredError as error:
            _stop(error, bool(kwargs.get("as_json")))
        except (typer.Exit, typer.Abort, TyperException, BrokenPipeError):
            raise
        except BaseException as error:
            # A panic of the library that holds the tables is no Exception.
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            _stop(_fault(error), bool(kwargs.get("as_json")))

    return guarded


class Fault(StirredError):
    """A defect of stirred, or a limit of the machine: exit code 1."""

    code = "fault"
    exit_code = 1


def _stop(error: StirredError, as_json: bool) -> NoReturn:
    if as_json:
        print_json({"error": error.as_dict()})
    else:
        _print_error(error)
    raise typer.Exit(error.exit_code) from None


def _fault(error: BaseException) -> Fault:
    """What may be said of an error that is not ours: its kind, and where in our code it arose."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f"{Path(f.filename).stem}:{f.lineno}" for f in frames if "stirred" in Path(f.filename).parts]
    return Fault(
        f"an unforeseen {type(error).__name__} stopped the command",
        field=" > ".join(own[-5:]) or "stirred",
        expected="a result, or a refusal that names its reason",
        hint="Please report the kind and the place; the text of the error may hold data and is not shown.",
    )


def print_json(body: dict[str, Any]) -> None:
    """One object on standard output, nothing else."""
    sys.stdout.write(json_text(body))


def json_text(body: dict[str, Any]) -> str:
    """One object with the version of its schema."""
    return json.dumps({"schema_version": 1, **body}, ensure_ascii=False, indent=2) + "\n"


def print_text(text: str) -> None:
    """A paragraph, wrapped to the terminal."""
    from rich.console import Console

    Console().print(text, markup=False, highlight=False, emoji=False)


def print_items(items: Iterable[object]) -> None:
    """A list, an item a line."""
    for item in items:
        print_text(f"* {item}")


def print_card(card: Card) -> None:
    """A spec card: questions in bold, answers indented and wrapped."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console()
    console.print(Text(card.statement))
    for line in card.lines:
        console.print(Text(f"\n{line.question}", style="bold"))
        console.print(Padding(Text(line.answer), (0, 0, 0, 4)))


def print_table(
    title: str, columns: Iterable[str], rows: Iterable[Iterable[object]], first_whole: bool = False
) -> None:
    """A table for a terminal; ``first_whole`` keeps the first column on one line."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    heading = Text(title, style="table.title")
    table = Table(title=heading, title_justify="left", header_style="bold", show_lines=False)
    for index, column in enumerate(columns):
        table.add_column(Text(column), overflow="fold", no_wrap=index == 0 and first_whole)
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    console.print(table)


@contextlib.contextmanager
def progress_by_level() -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar for each level of a geography on a terminal; nothing in a pipe."""
    from rich.console import Console
    from rich.progress import Progress, TaskID

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with Progress(console=console, transient=True) as bars:
        known: dict[str, TaskID] = {}

        def advance(level: str, done: int, total: int) -> None:
            if level not in known or done < bars.tasks[known[level]].completed:
                known[level] = bars.add_task(level, total=total)
            bars.update(known[level], completed=done)

        yield advance


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else str(value)


def _print_error(error: StirredError) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    console.print(Text("error: ", style="bold red") + Text(error.problem))
    for label, text in (("field", error.field), ("expected", error.expected), ("hint", error.hint)):
        console.print(Text(f"  {label}: ", style="bold") + Text(text))

"""Arguments of commands: read exactly, or refused by the name of their option."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from stirred.errors import InputError, StirredError

T = TypeVar("T")
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
PlanPath = Annotated[Path, typer.Argument(help="A plan in YAML or JSON.")]

LARGEST_STRATUM = 10**15
LARGEST_LOSS = 1_000


def apart(output: Path | None, *inputs: str) -> None:
    """Refuse an output that would replace what is read."""
    if output is not None and any(Path(name).resolve() == output.resolve() for name in inputs):
        raise InputError(
            "the output would replace a file that is read",
            field="--output",
            expected="another name",
            hint="Nothing was written.",
        )


def stratum(size: int) -> int:
    """The size of a stratum in which something can be swapped."""
    if not 2 <= size <= LARGEST_STRATUM:
        raise InputError(
            "a stratum of fewer than two records has nothing to swap"
            if size < 2
            else "no stratum has so many records",
            field="--largest-stratum",
            expected="from 2 to 10^15 records",
            hint="Count the records of the largest stratum with two distinct records.",
        )
    return size


def probability(text: str, option: str) -> Fraction:
    """An exact number from 0 to 1."""
    from stirred.spec import as_fraction

    value = _read(as_fraction, text, option)
    if not 0 <= value <= 1:
        raise InputError(
            f"{option} is not a probability",
            field=option,
            expected="a number from 0 to 1",
            hint="Write 0.05 for five per cent.",
        )
    return value


def loss(text: str, option: str) -> str:
    """A protection loss that a mechanism can have: exact, positive and finite; as it was written."""
    from stirred.spec import Exact

    value = _read(Exact.of, text, option)
    if not Exact.of(0) < value <= Exact.of(LARGEST_LOSS):
        raise InputError(
            f"{option} is not a loss to aim at",
            field=option,
            expected=f"a number above 0, of at most {LARGEST_LOSS:,}",
            hint="Write for example 3, 7/2 or ln(20).",
        )
    return text


def named(text: str, option: str) -> str:
    """A name that says something."""
    if not text.strip():
        raise InputError(
            f"{option} is empty", field=option, expected="a name", hint=f"Name it, or leave {option} out."
        )
    return text


def _read(reader: Callable[[str], T], text: str, option: str) -> T:
    try:
        return reader(text)
    except StirredError as error:
        problem = f"{option}: {error.problem}"
        raise InputError(problem, field=option, expected=error.expected, hint=error.hint) from None

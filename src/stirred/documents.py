"""YAML and JSON that somebody wrote: read strictly, or refused.

Guarantee
    A document says one thing: a key stands once in its mapping, nothing is merged into it, and a number is
    what its digits say. A document that is too large (also once its references are written out), too deep
    or ill-formed is refused before anything is made of it, and no value of it is shown.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

from stirred.errors import InputError

LARGEST = 16 * 1024 * 1024
DEEPEST = 64
MOST_PARTS = 1_000_000
MOST_DIGITS = 300


def read_text(path: Path, what: str, field: str = "file") -> str:
    """The text of a file; refused where there is none, or where it is too large or not UTF-8."""
    try:
        if not path.is_file():
            raise FileNotFoundError
        if path.stat().st_size > LARGEST:
            raise _too_large(what, field)
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise InputError(
            f"the {what} {path.name} could not be read",
            field=field,
            expected="a text file in UTF-8",
            hint="Check the path.",
        ) from None


def parse_json(text: str | bytes, what: str, field: str = "file") -> Any:
    """JSON as plain data. A number with a point or an exponent stays exact: it is a ``Decimal``."""
    if len(text) > LARGEST:
        raise _too_large(what, field)
    try:
        body = json.loads(
            text,
            object_pairs_hook=_mapping,
            parse_int=_integer,
            parse_float=_decimal,
            parse_constant=_not_a_number,
        )
        return _require_shallow(body)
    except _Unclear as unclear:
        raise _refused(what, field, str(unclear)) from None
    except RecursionError:
        raise _refused(what, field, DEEP) from None
    except ValueError as error:
        where = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise _ill_formed(what, field, where, "JSON") from None


def read_yaml(path: Path, what: str = "plan") -> Any:
    """A YAML or JSON file as ``parse_yaml`` reads it."""
    return parse_yaml(read_text(path, what, what), f"{what} {path.name}", what)


def read_mapping(path: Path, what: str, expected: str, hint: str) -> dict[str, Any]:
    """A YAML or JSON file that must hold keys and values."""
    record = read_yaml(path, what)
    if isinstance(record, dict):
        return record
    problem = f"the {what} {path.name} is empty or not a mapping"
    raise InputError(problem, field=what, expected=expected, hint=hint)


def parse_yaml(text: str, what: str, field: str = "file") -> Any:
    """YAML or JSON as plain data.

    Truth values are ``true`` and ``false``; a number stays text unless it is a plain integer, so that
    decimals are exact and codes keep their zeros.
    """
    import yaml

    if len(text) > LARGEST:
        raise _too_large(what, field)
    try:
        return _require_shallow(yaml.load(text, Loader=_loader()))  # noqa: S506 - a SafeLoader
    except _Unclear as unclear:
        raise _refused(what, field, str(unclear)) from None
    except RecursionError:
        raise _refused(what, field, DEEP) from None
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark is not None else ""
        raise _ill_formed(what, field, where, "YAML or JSON") from None


DEEP = f"is nested more than {DEEPEST} levels deep"


class _Unclear(Exception):
    """What is unclear in a document, as the end of a sentence."""


def _loader() -> type[Any]:
    import yaml

    class Strict(yaml.SafeLoader):
        """A SafeLoader without tags, merging, repeated keys and references that grow or turn in a circle."""

        def __init__(self, stream: Any) -> None:
            super().__init__(stream)
            self.depth = self.parts = 0
            self.open: set[str] = set()
            self.sizes: dict[Any, int] = {}

        def compose_node(self, parent: Any, index: Any) -> Any:
            event = self.peek_event()  # type: ignore[no-untyped-call]
            if isinstance(event, yaml.AliasEvent):
                if event.anchor in self.open:
                    raise _Unclear("has a part that contains itself")
                node = super().compose_node(parent, index)
                self._count(self.sizes[node])
                return node
            if event.tag is not None:
                raise _Unclear("names a type with an exclamation mark")
            if self.depth == DEEPEST:
                raise _Unclear(DEEP)
            before = self.parts
            self._count(1)
            self.depth += 1
            self.open.add(event.anchor)
            node = super().compose_node(parent, index)
            self.open.discard(event.anchor)
            self.depth -= 1
            self.sizes[node] = self.parts - before
            return node

        def _count(self, parts: int) -> None:
            """Add to the parts that the document has once its references are written out."""
            self.parts += parts
            if self.parts > MOST_PARTS:
                raise _Unclear(f"has more than {MOST_PARTS:,} parts")

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            if "<<" in (key.value for key, _ in node.value):
                raise _Unclear("merges mappings with <<")
            if any(isinstance(key, list | dict) for key in keys):
                raise _Unclear("has a key that is no text")
            _require_distinct(keys)
            return super().construct_mapping(node, deep)

        def construct_yaml_int(self, node: Any) -> int:
            return _integer(str(self.construct_scalar(node)))

    kept = ("null",)
    Strict.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag.endswith(kept)]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    tag = "tag:yaml.org,2002:"
    Strict.add_implicit_resolver(f"{tag}bool", re.compile("^(?:true|false)$"), list("tf"))
    Strict.add_implicit_resolver(f"{tag}int", re.compile("^-?(?:0|[1-9][0-9]*)$"), list("-0123456789"))
    Strict.add_constructor(f"{tag}int", Strict.construct_yaml_int)
    return Strict


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _require_distinct([key for key, _ in pairs])
    return dict(pairs)


def _require_distinct(keys: list[Any]) -> None:
    # Two keys that a later reader takes for the same text are the same key.
    if len({str(key) for key in keys}) != len(keys):
        raise _Unclear("has a key twice in one mapping")


def _integer(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise _Unclear(f"has an integer of more than {MOST_DIGITS} digits")
    return int(text)


def _decimal(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except ArithmeticError:
        number = Decimal("inf")
    if len(text) > MOST_DIGITS or not number.is_finite() or abs(number.adjusted()) > MOST_DIGITS:
        raise _Unclear(f"has a number of more than {MOST_DIGITS} digits")
    return number


def _not_a_number(text: str) -> Any:
    raise _Unclear("has a number that is none (NaN or Infinity); write infinity as text, inf")


def _require_shallow(body: Any) -> Any:
    """Refuse what is nested too deeply for a reader, and text that no file can hold."""
    layer, depth = [body], 0
    while layer:
        if depth > DEEPEST:
            raise _Unclear(DEEP)
        for part in layer:
            if isinstance(part, str) and any("\ud800" <= letter <= "\udfff" for letter in part):
                raise _Unclear("has half a character (a lone surrogate)")
        layer = [inner for part in layer for inner in _inside(part)]
        depth += 1
    return body


def _inside(part: Any) -> list[Any]:
    if isinstance(part, dict):
        return [*part.keys(), *part.values()]
    return part if isinstance(part, list) else []


def _too_large(what: str, field: str) -> InputError:
    return InputError(
        f"the {what} is too large",
        field=field,
        expected=f"at most {LARGEST // 1024**2} MiB of text",
        hint="Data belong in files of their own, which the text names.",
    )


def _refused(what: str, field: str, why: str) -> InputError:
    return InputError(
        f"the {what} {why}",
        field=field,
        expected="plain text, numbers, lists and mappings, every key once",
        hint="Write out what is meant; nothing is guessed.",
    )


def _ill_formed(what: str, field: str, where: str, form: str) -> InputError:
    return InputError(
        f"the {what} is not well-formed{where}",
        field=field,
        expected=form,
        hint="Check indentation, brackets and quotes.",
    )

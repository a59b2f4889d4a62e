"""The base of every building block: frozen, strict, written and read as JSON, silent about values."""

from __future__ import annotations

import difflib
from typing import Any, Self, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from stirred.errors import InputError, MissingBlock, StirredError, UnknownName

BLOCKS = ("domain", "multiverse", "input_premetric", "output_premetric", "budget")

_QUESTIONS = {
    "domain": "who is eligible for protection",
    "multiverse": "where does protection extend to (the invariants)",
    "input_premetric": "what is the protection unit",
    "output_premetric": "how is a change of output measured",
    "budget": "how much protection loss is allowed",
}


def _constructed(cls: type[BaseModel], /, *args: Any, **fields: Any) -> Any:
    """Construction from Python raises our errors; nested reading keeps the whole path of a field."""
    try:
        return type.__call__(cls, *args, **fields)
    except ValidationError as error:
        raise translated(error, cls) from None


_Translating: Any = type("_Translating", (type(BaseModel),), {"__call__": _constructed})


class Block(BaseModel, metaclass=_Translating):  # type: ignore[metaclass]
    """A value of the theory: immutable, comparable, serialisable."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    @classmethod
    def read(cls, record: object) -> Self:
        """Build the block from plain JSON data."""
        try:
            return cls.model_validate(record)
        except ValidationError as error:
            raise translated(error, cls) from None

    def record(self) -> dict[str, Any]:
        """The block as plain JSON data; fields at their default are left out."""
        record: dict[str, Any] = self.model_dump(mode="json", exclude_defaults=True)
        return record


def translated(error: ValidationError, model: type[BaseModel]) -> StirredError:
    """Turn a validation failure into an error that names the field and shows no value.

    An unknown key is reported before a missing one: it is usually the cause of it.
    """
    failures = error.errors(include_input=False, include_url=False, include_context=True)
    first = next((f for f in failures if f["type"] == "extra_forbidden"), failures[0])
    path = [str(part) for part in first["loc"]]
    field = ".".join(path) or model.__name__
    if first["type"] == "missing" and path[-1] in _QUESTIONS:
        return MissingBlock(
            f"the specification has no {path[-1].replace('_', ' ')}",
            field=field,
            expected=f"an answer to: {_QUESTIONS[path[-1]]}?",
            hint="A guarantee is five building blocks; there is no default for any of them.",
        )
    if first["type"] in {"union_tag_invalid", "union_tag_not_found"}:
        tags = str(first.get("ctx", {}).get("expected_tags", "a known kind")).replace("'", "")
        return UnknownName(
            f"{field}: this kind is not known"
            if first["type"] == "union_tag_invalid"
            else f"{field} has no kind",
            field=f"{field}.kind",
            expected=f"one of {tags}",
            hint="For one of your own, use kind 'described' (symbolic) or 'given' (a finite table).",
        )
    if first["type"] == "extra_forbidden":
        return _unknown_key(path, [f["loc"][-1] for f in failures if f["type"] == "missing"], model)
    missing = first["type"] == "missing"
    return InputError(
        f"{field} is missing" if missing else f"{field} is not valid",
        field=field,
        expected="a value" if missing else str(first["msg"]).removeprefix("Value error, "),
        hint="Add the field." if missing else "Correct the field and try again.",
    )


def _unknown_key(path: list[str], missing: list[int | str], model: type[BaseModel]) -> InputError:
    known = [str(name) for name in missing] + _keys(model, path[:-1])
    near = difflib.get_close_matches(path[-1], known, 1)
    return InputError(
        f"unknown key {path[-1]}",
        field=".".join(path),
        expected="a key of this block",
        hint=f"Did you mean {near[0]}?" if near else "Remove the key.",
    )


def _keys(model: type[BaseModel], path: list[str]) -> list[str]:
    """The keys of the block at a path; the path of an error names the kind of a block in a union."""
    blocks = [model]
    for part in path:
        tagged = [block for block in blocks if _kind(block) == part]
        if len(blocks) > 1 and tagged:
            blocks = tagged
            continue
        inner: list[type[BaseModel]] = []
        for block in blocks:
            field = block.model_fields.get(part) or next(
                (f for f in block.model_fields.values() if f.alias == part), None
            )
            if field is not None:
                inner += _blocks_in(field.annotation)
            elif part.isdigit():
                inner.append(block)
        blocks = inner
    return [field.alias or name for block in blocks for name, field in block.model_fields.items()]


def _blocks_in(annotation: Any) -> list[type[BaseModel]]:
    """The blocks that a type may hold, however it wraps them."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [block for part in get_args(annotation) for block in _blocks_in(part)]


def _kind(block: type[BaseModel]) -> object:
    kind = block.model_fields.get("kind")
    return None if kind is None else kind.default

"""The base of every building block: frozen, strict, written and read as JSON, silent about values."""

from __future__ import annotations

import difflib
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic._internal._model_construction import ModelMetaclass

from stirred.errors import InputError, MissingBlock, StirredError, UnknownName

BLOCKS = ("domain", "multiverse", "input_premetric", "output_premetric", "budget")

_QUESTIONS = {
    "domain": "who is eligible for protection",
    "multiverse": "where does protection extend to (the invariants)",
    "input_premetric": "what is the protection unit",
    "output_premetric": "how is a change of output measured",
    "budget": "how much protection loss is allowed",
}


class _Translating(ModelMetaclass):
    """Construction from Python raises our errors; nested reading keeps the whole path of a field."""

    def __call__(cls, *args: Any, **fields: Any) -> Any:
        try:
            return super().__call__(*args, **fields)
        except ValidationError as error:
            raise translated(error, cls) from None


class Block(BaseModel, metaclass=_Translating):
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
    """Turn the first validation failure into an error that names the field and shows no value."""
    first = error.errors(include_input=False, include_url=False, include_context=True)[0]
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
            f"{field}: this kind is not known",
            field=f"{field}.kind",
            expected=f"one of {tags}",
            hint="For one of your own, use kind 'described' (symbolic) or 'given' (a finite table).",
        )
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(path[-1], model.model_fields, 1)
        return InputError(
            f"unknown key {path[-1]}",
            field=field,
            expected="only " + ", ".join(model.model_fields),
            hint=f"Did you mean {near[0]}?" if near else "Remove the key.",
        )
    return InputError(
        f"{field} is not valid",
        field=field,
        expected=str(first["msg"]).removeprefix("Value error, "),
        hint="Correct the field and try again.",
    )

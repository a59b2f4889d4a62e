"""The kinds of a building block: one table, by which blocks are read, written and described."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from typing import Annotated, Any, TypeVar

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import core_schema

from stirred.errors import InputError
from stirred.spec.blocks.block import Block

Kind = TypeVar("Kind", bound=Block)


class Kinds:
    """The kinds of one block. Annotates a type: what has that type is read by its ``kind``.

    The kinds that stirred knows are listed in one place; a kind of one's own is added to them at run time.
    """

    def __init__(self, *listed: type[Block]) -> None:
        self.listed = listed
        self._added: dict[str, type[Block]] = {}

    def add(self, kind: type[Kind]) -> type[Kind]:
        """Read and write this kind too; usable as a decorator."""
        name = kind.model_fields["kind"].default
        if name in self._added or any(name == other.model_fields["kind"].default for other in self.listed):
            raise InputError(
                f"there is a kind {name} already",
                field="kind",
                expected="a name that no other kind has",
                hint="Give the kind another name.",
            )
        self._added[name] = kind
        return kind

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        listed: Any = reduce(or_, self.listed)
        union = Annotated[listed, Field(discriminator="kind")]
        itself = core_schema.wrap_serializer_function_ser_schema(
            lambda block, write: write(block), schema=core_schema.any_schema()
        )
        return core_schema.no_info_wrap_validator_function(self._read, handler(union), serialization=itself)

    def _read(self, block: Any, listed: Callable[[Any], Any]) -> Any:
        kind = block.get("kind") if isinstance(block, Mapping) else getattr(block, "kind", None)
        added = self._added.get(kind) if isinstance(kind, str) else None
        return listed(block) if added is None else added.model_validate(block)

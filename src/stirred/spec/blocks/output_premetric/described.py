"""Output premetrics that are only described."""

from __future__ import annotations

from typing import ClassVar, Literal

from stirred.errors import InputError
from stirred.spec.arithmetic.exact import Exact
from stirred.spec.blocks.budget import Parametrisation
from stirred.spec.blocks.output_premetric.base import Premetric, Properties
from stirred.spec.finite.distribution import Distribution


class Described(Premetric):
    """A way of measuring that is only described: it can be named, not computed or composed."""

    kind: Literal["described"] = "described"
    name: str
    meaning: str
    properties: ClassVar[Properties] = Properties(law="none")
    parametrisations: ClassVar[tuple[Parametrisation, ...]] = ("epsilon", "rho", "rho_squared", "mu", "loss")

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        raise InputError(
            f"the output premetric {self.name} is described, not defined",
            field="output_premetric",
            expected="a premetric that can be computed",
            hint="Choose one of the defined kinds to compute with.",
        )

    def sentence(self) -> str:
        return self.meaning

    @property
    def symbol(self) -> str:
        return self.name

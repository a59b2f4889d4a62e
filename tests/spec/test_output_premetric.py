"""A new output premetric is one file: a toy one, defined here, goes through all rooms that read budgets."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Literal

import pytest

from stirred.errors import UnknownName
from stirred.ledger import Amount
from stirred.report import ReleaseRow, ReleaseTable
from stirred.report.meaning import Meaning
from stirred.report.registry import About, lint, record_of
from stirred.spec import Budget, Exact, Multiplicative, Premetric, Specification, catalogue, compare, compose
from stirred.spec.blocks.latex import latex
from stirred.spec.blocks.output_premetric import Coarsened, Properties
from stirred.spec.blocks.output_premetric.base import Bound
from stirred.spec.finite.distribution import Distribution
from stirred.spec.order.comparison import Order


class Halved(Premetric):
    """Half of D_Mult: odds grow by e to twice the budget."""

    kind: Literal["halved"] = "halved"
    symbol: ClassVar[str] = "D_half"
    words: ClassVar[str] = "the log-ratio of probabilities is at most twice the budget"
    properties: ClassVar[Properties] = Properties(
        law="sum", positive=True, symmetric=True, post_processing=True, linear_group=True
    )
    coordinates: ClassVar[tuple[str, ...]] = ("loss",)
    below: ClassVar[dict[str, Bound]] = {"multiplicative": (Exact.of("1/2"), "it is half of D_Mult")}
    above: ClassVar[dict[str, Bound]] = {"multiplicative": (Exact.of(2), "D_Mult is twice D_half")}
    tail: ClassVar[str] = "doubling"

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        return Multiplicative().between(p, q) / 2

    def log_odds(self, amount: Exact, delta: Fraction) -> Exact:
        return amount * 2


def halved(amount: object) -> Specification:
    pure = catalogue.specification("pure-dp", Budget.epsilon(1))
    return Specification(**dict(pure) | {"output_premetric": Halved(), "budget": Budget.loss(amount)})


def test_it_stands_in_a_specification_and_on_its_card() -> None:
    specification = halved("1/2")
    assert str(specification) == "L-DP(X, {X}, d_Ham^r, D_half), L = 0.5"
    assert specification.latex.endswith(r"D_{\mathrm{half}}),\; L = 0.5")
    assert specification.record()["output_premetric"] == {"kind": "halved"}
    answers = " ".join(line.answer for line in specification.card().lines)
    assert "twice the budget (D_half)" in answers
    assert "The measured change for one record is at most 0.5." in answers


def test_it_is_read_from_a_file_only_once_it_is_listed() -> None:
    with pytest.raises(UnknownName, match="this kind is not known"):
        Specification.from_json(halved(1).to_json())


def test_it_is_compared_by_its_budgets_and_by_its_bounds() -> None:
    assert compare(halved(1), halved(2)).overall == Order.STRONGER
    pure = catalogue.specification("pure-dp", Budget.epsilon(2))
    assert compare(halved(1), pure).overall == Order.EQUIVALENT
    assert "D_Mult is twice D_half" in compare(halved("1/2"), pure).reason


def test_it_is_composed_and_counted_by_the_ledger() -> None:
    assert compose(halved(1), halved(2), order="adaptive").budget.amount == Exact.of(3)
    amount = Amount.of(halved("0.1"))
    assert str(amount + amount) == "L = 1/5"
    assert (amount + amount).within(halved(1).flavor).budget == Budget.loss("1/5")
    assert Amount.read(amount.record(), halved(1).flavor) == amount


def test_it_has_a_release_table_with_its_own_parameter() -> None:
    table = ReleaseTable.of([ReleaseRow("step", "all", "toy", "here", halved("1/3"))], delta="1e-6")
    assert table.parameters is not None and table.parameters.own is not None
    assert (table.parameters.own_name, table.parameters.own.value) == ("L", Exact.of("1/3"))
    assert "measured by D_half; guaranteed is L = 0.3334" in table.release.epsilon
    assert table.parameters.record()["own"]["value"] == pytest.approx(1 / 3)


def test_it_has_a_meaning_in_odds() -> None:
    meaning = Meaning.of(halved("ln(3)/2"))
    assert [odds.factor for odds in meaning.odds] == [3, 9]
    assert "at most 25 of 100 after it, except with probability 1e-10" in meaning.short
    assert "by doubling" in meaning.setting
    assert "the L that is guaranteed" in meaning.conversion_warnings[0]


def test_it_is_registered_as_a_custom_variant() -> None:
    about = About(
        name="toy",
        curators=("Somebody",),
        intended_use="tests",
        description="one number",
        region="nowhere",
        publication_date="2026-01-01",
        authors=("Somebody",),
    )
    record = record_of(halved(1), about)
    assert record.deployment.dp_variant.variant_name == "Custom"
    assert "Measure: the log-ratio" in record.deployment.privacy_loss.privacy_parameters_details
    assert lint(record, halved(1)) == ()


def test_it_may_be_coarsened() -> None:
    coarse = Coarsened(base=Halved(), groups=(("a",), ("b",)), reason="only b matters")
    specification = Specification(**dict(halved(1)) | {"output_premetric": coarse})
    assert "D_half|coarse" in str(specification)
    assert compare(halved(1), specification).overall == Order.STRONGER


@pytest.mark.parametrize(
    ("symbol", "typeset"),
    [
        ("D_α=2", r"D_{\alpha=2}"),
        ("D_χ²", r"D_{\chi^2}"),
        ("λ_gaussian-separation∘Tr", r"\lambda_{\mathrm{gaussian-separation}} \circ \mathrm{Tr}"),
        ("D_Mult|coarse", r"D_{\mathrm{Mult}}|_{\mathrm{coarse}}"),
        ("d_Ham^r", r"d_{\mathrm{Ham}}^{\mathrm{r}}"),
        ("ε(δ)", r"\varepsilon(\delta)"),
    ],
)
def test_a_symbol_is_typeset_from_its_name(symbol: str, typeset: str) -> None:
    assert latex(symbol) == typeset

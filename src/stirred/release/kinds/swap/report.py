"""What a report says of a swap: its rate among all rates."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from stirred.report import Figure, Section
from stirred.show import swap_rate_figure
from stirred.spec import Exact, swapping_loss


def swap_section(rate: Fraction, largest_stratum: int) -> Section:
    """The chosen rate among all rates of Theorem 1, and the least loss of any rate."""
    inside = 0 < rate < 1
    facts: dict[str, Any] = {"swap_rate": rate, "largest_stratum": largest_stratum}
    if largest_stratum and inside:
        facts["loss_by_theorem_1"] = swapping_loss(largest_stratum, rate)
        facts["least_loss_of_any_rate"] = Exact.log(largest_stratum + 1, 2)
    caption = (
        "Nominal protection loss against swap rate for the largest stratum, whose size b follows from the "
        "exact statistics. The dot is the rate that was used, the diamond the least loss of any rate."
    )
    drawn = largest_stratum >= 2 and inside
    return Section(
        key="swap_rate",
        title="The swap rate among all rates",
        lead="The budget is one number for the whole release and is not split. Losses are by Theorem 1.",
        facts=facts,
        figures=(Figure(swap_rate_figure((largest_stratum,), mark=rate), caption, frame="swap-rate"),)
        if drawn
        else (),
        may_not=("That the swap rate alone is the protection: it works through the size of the strata.",),
    )

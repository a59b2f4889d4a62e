"""Statements of the thesis and the slides as printed, against what is true."""

import itertools
import math
import re
from pathlib import Path

from stirred.spec import Domain
from stirred.spec.blocks.multiverse import Explicit, refines


def likelihood(answers: tuple[int, ...], first: int, flip: float, truth: float) -> float:
    """Randomised response on each variable of a chain that starts at a given value."""
    total = 0.0
    for rest in itertools.product((0, 1), repeat=len(answers) - 1):
        chain = (first, *rest)
        steps = math.prod(flip if a != b else 1 - flip for a, b in itertools.pairwise(chain))
        total += steps * math.prod(
            truth if a == b else 1 - truth for a, b in zip(chain, answers, strict=True)
        )
    return total


def test_the_theorem_on_the_markov_boundary_fails_on_a_chain() -> None:
    """The first of four variables has one neighbour, so the bound is e^2; a rare value comes near 21.4."""
    truth = math.e / (1 + math.e)
    one, zero = (likelihood((1, 1, 1, 1), first, 0.05, truth) for first in (1, 0))
    prior = 1e-9
    ratio = one / (prior * one + (1 - prior) * zero)
    assert 21.4 < ratio < 21.5
    assert ratio > math.exp(2)


def test_the_definition_of_a_refinement_without_its_prime_is_true_of_every_multiverse() -> None:
    """ "Every D in the first is a subset of some D' in the first": each is a subset of itself."""
    domain = Domain.finite(range(3))
    coarse, fine = Explicit(parts=((0, 1, 2),)), Explicit(parts=((0,), (1, 2)))
    for multiverse in (coarse, fine):
        assert all(any(d <= e for e in multiverse.parts) for d in multiverse.parts)
    assert refines(fine, coarse, domain)
    assert not refines(coarse, fine, domain)


def test_every_erratum_names_a_test_or_is_marked_as_a_remark() -> None:
    page = Path("docs/explanation/errata.md").read_text(encoding="utf-8")
    entries = [p for p in page.split("\n\n") if p.startswith("**")]
    assert len(entries) > 15
    for entry in entries:
        named = re.findall(r"`(tests/[a-z_/0-9]+\.py)`", entry)
        assert named, entry.splitlines()[0]
        assert all(Path(name).is_file() for name in named)

"""Randomness for mechanisms: a keystream seeded by the operating system, and exact draws from it.

``RandomSource`` is what a release uses. ``TestSource`` has a seed, exists for tests only, and is a
different type, so that whatever was made with it can be told apart and is never published.

``discrete_gaussian`` and ``discrete_laplace`` are the noise: exact laws over all integers, from tables. Their
masses, distribution functions and variances come as enclosures, two rationals with the truth between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred.doors import door

if TYPE_CHECKING:
    from stirred.noise.discrete import discrete_gaussian, discrete_laplace
    from stirred.noise.enclosure import (
        Enclosure,
        gaussian_cdf,
        gaussian_mass,
        gaussian_variance,
        laplace_cdf,
        laplace_mass,
        laplace_variance,
    )
    from stirred.noise.shuffle import below, half_words, permutation
    from stirred.noise.source import LARGEST_DRAW, RandomSource, Source, TestSource
    from stirred.noise.uniform import bernoulli, integers
else:
    __getattr__, __dir__, __all__ = door(__name__)

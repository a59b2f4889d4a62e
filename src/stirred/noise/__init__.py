"""Randomness for mechanisms: a keystream seeded by the operating system, and exact draws from it.

``RandomSource`` is what a release uses. ``TestSource`` has a seed, exists for tests only, and is a
different type, so that whatever was made with it can be told apart and is never published.
"""

from stirred.noise.source import RandomSource, Source, TestSource
from stirred.noise.uniform import bernoulli, integers, permutation

__all__ = ["RandomSource", "Source", "TestSource", "bernoulli", "integers", "permutation"]

"""A stream of uniform 64-bit words: the AES-256-CTR keystream of a key from the operating system.

Guarantee
    Words are computationally indistinguishable from uniform; child streams are independent of their
    parent and of each other; a forked process never repeats its parent's words.
Assumes
    AES-256 and HMAC-SHA-256 are pseudo-random, and the operating system's generator is sound.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

from stirred.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LARGEST_DRAW = 1 << 27
_PIECE = 1 << 20
_SPAWN = (-(2**100),)


class Source(ABC):
    """Uniform words, and child streams for independent tasks."""

    def __init__(self, key: bytes) -> None:
        self._restart(key)

    def _restart(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._key = key
        self._generation = _forks
        self._spawned = 0
        self._stream = Cipher(algorithms.AES(_derived(key, b"stream")), modes.CTR(bytes(16))).encryptor()

    @property
    @abstractmethod
    def publishable(self) -> bool:
        """Whether a release made from this source may be published."""

    def child(self, *path: int) -> Self:
        """The independent stream of a task, named by its path of integers."""
        made = object.__new__(type(self))
        made._restart(self._child_key(path))
        return made

    def spawn(self) -> Self:
        """A stream that this source has never given before: every call makes another one."""
        self._after_fork()
        self._spawned += 1
        return self.child(*_SPAWN, self._spawned)

    def _child_key(self, path: tuple[int, ...]) -> bytes:
        self._after_fork()
        label = b"child" + b"".join(part.to_bytes(16, "big", signed=True) for part in path)
        return _derived(self._key, label)

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next words of the stream."""
        import numpy as np

        if count < 0 or count > LARGEST_DRAW:
            raise InputError(
                "too many words at once",
                field="count",
                expected=f"from 0 to {LARGEST_DRAW}",
                hint="Draw in blocks.",
            )
        self._after_fork()
        out = bytearray(8 * count)
        view = memoryview(out)
        for start in range(0, len(out), _PIECE):
            piece = view[start : start + _PIECE]
            self._stream.update_into(piece, piece)
        return np.frombuffer(out, dtype=np.uint64)

    def _after_fork(self) -> None:
        """A child process that inherited this object takes a stream of its own."""
        if self._generation != _forks:
            self._restart(self._key_after_fork())

    @abstractmethod
    def _key_after_fork(self) -> bytes: ...

    def __reduce__(self) -> str:
        raise TypeError("a random source is not copied between processes: hand over a child instead")


class RandomSource(Source):
    """Randomness for releases, keyed by the operating system."""

    def __init__(self) -> None:
        super().__init__(os.urandom(32))

    @property
    def publishable(self) -> bool:
        return True

    def _key_after_fork(self) -> bytes:
        return os.urandom(32)


class TestSource(Source):
    """Reproducible randomness, for tests only: a release made with it is never published."""

    __test__ = False

    def __init__(self, seed: int) -> None:
        super().__init__(_derived(b"stirred test source", str(seed).encode()))

    @property
    def publishable(self) -> bool:
        """False: its words can be reproduced by anyone who knows the seed."""
        return False

    def _key_after_fork(self) -> bytes:
        return _derived(self._key, b"fork" + os.getpid().to_bytes(8, "big"))


_forks = (os.getpid(), 0)


def _after_fork_in_child() -> None:
    """Count the fork: a process number may be given again, the count within a line of processes is not."""
    global _forks  # noqa: PLW0603
    _forks = (os.getpid(), _forks[1] + 1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _derived(key: bytes, label: bytes) -> bytes:
    return hmac.new(key, label, hashlib.sha256).digest()

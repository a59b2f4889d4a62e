"""One process at a time in one place.

Guarantee
    Of several processes that enter with the same output one goes on; the others are refused at once. The lock
    is the operating system's: it ends with its process, however that ends.
Assumes
    A file system and an operating system with locks (``flock``); elsewhere every process goes on, and what
    must not happen twice is decided by the ledger alone. A process that is killed leaves an empty file, which
    keeps nobody out and which the next run removes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from stirred.errors import Refusal
from stirred.places import neighbour, unwritable

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:
    LOCKS = False
else:
    LOCKS = True


@contextlib.contextmanager
def alone(output: Path) -> Iterator[None]:
    """Refuse while another process works on the same output."""
    path = neighbour(output, "lock")
    handle = _locked(path) if LOCKS else None
    try:
        yield
    finally:
        if handle is not None:
            path.unlink(missing_ok=True)
            os.close(handle)


def _locked(path: Path) -> int | None:
    """The locked file under this very name, or None where there are no locks."""
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise unwritable(error) from None
        try:
            flock(handle, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise Refusal(
                "another process is writing this output",
                field="output",
                expected="one run at a time for one output",
                hint="Wait until it has ended. Nothing was drawn or spent by this run.",
            ) from None
        except OSError:
            os.close(handle)
            return None
        # Whoever held it before removed the name: a lock on a file without a name keeps nobody out.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.lstat()):
                return handle
        os.close(handle)

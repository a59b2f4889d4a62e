"""The folder of a release: it appears complete or not at all, and what is internal is its owner's alone.

Guarantee
    Everything is written to a temporary neighbour that only its owner can read; the neighbour is renamed
    last. What an interrupted run leaves there is found again by its name, from the folder, the spend and the
    attempt.
Assumes
    The folder and its temporary neighbour are on one file system, where renaming is atomic.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stirred.errors import InputError
from stirred.places import make_durable, make_ordinary, make_private, neighbour, private_folder, unwritable
from stirred.release.manifest import Manifest

PUBLIC, INTERNAL = "public", "internal"


@dataclass
class Work:
    """A temporary neighbour of the output; once finished in the ledger it is kept until it is renamed."""

    folder: Path
    finished: bool = False


def place_of(output: Path) -> Path:
    """The one name of a folder, however the way to it is written."""
    return output.parent.resolve() / output.name


def part_of(output: Path, spend: int, attempt: int) -> Path:
    """The temporary neighbour of an attempt."""
    return neighbour(output, f"{spend}-{attempt}")


@contextmanager
def working_folder(part: Path, discard: Callable[[], None] = lambda: None) -> Iterator[Work]:
    """Removed on failure before the ledger's last entry; kept after it, or if the machine dies.

    ``discard`` is called before a folder that failed is removed.
    """
    work = Work(part)
    try:
        if part.exists():
            shutil.rmtree(part)
        private_folder(private_folder(part) / INTERNAL)
        yield work
    except BaseException as error:
        if not work.finished:
            discard()
        if isinstance(error, OSError):
            raise unwritten(error) from None
        raise
    finally:
        if not work.finished:
            shutil.rmtree(part, ignore_errors=True)


def appear(folder: Path, output: Path, manifest: Manifest) -> None:
    """Give the finished folder its name; another run of the same plan may have done so just now."""
    try:
        folder.rename(output)
    except FileNotFoundError:
        if not output.is_dir() or Manifest.read(output).digest != manifest.digest:
            raise


def settle(folder: Path) -> None:
    """Modes of the finished folder (what is internal stays closed), and everything on the disk.

    After a power cut the ledger must not know more than the disk.
    """
    make_private(folder / INTERNAL)
    make_ordinary(folder)
    for path in (*folder.rglob("*"), folder):
        make_durable(path)


def unwritten(error: OSError) -> InputError:
    """What an operating system's refusal to write means here."""
    return unwritable(error, "the release", "What was spent stays spent; run the same plan again to resume.")

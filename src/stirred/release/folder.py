"""The folder of a release: it appears complete or not at all, and what is internal is its owner's alone.

Guarantee
    Everything is written to a temporary neighbour that only its owner can read; the neighbour is renamed
    last. What an interrupted run leaves there is found again by its name, from the folder, the spend and the
    attempt.
Assumes
    The folder and its temporary neighbour are on one file system, where renaming is atomic.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stirred.errors import InputError
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
    return output.with_name(f".{output.name}.{spend}-{attempt}.part")


@contextmanager
def working_folder(part: Path) -> Iterator[Work]:
    """Removed on failure before the ledger's last entry; kept after it, or if the machine dies."""
    work = Work(part)
    try:
        if part.exists():
            shutil.rmtree(part)
        part.parent.mkdir(parents=True, exist_ok=True)
        part.mkdir(mode=0o700)
        (part / INTERNAL).mkdir(mode=0o700)
        yield work
    except OSError as error:
        raise unwritable(error) from None
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
    mask = os.umask(0)
    os.umask(mask)
    folder.chmod(0o777 & ~mask)
    for path in (*folder.rglob("*"), folder):
        if path != folder and path.relative_to(folder).parts[0] == INTERNAL:
            path.chmod(0o700 if path.is_dir() else 0o600)
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def unwritable(error: OSError) -> InputError:
    """What an operating system's refusal to write means here."""
    return InputError(
        f"the release could not be written ({error.strerror or 'input or output failed'})",
        field="output",
        expected="a folder with room and permission to write",
        hint="What was spent stays spent; run the same plan again to resume.",
    )


def exists(output: Path) -> InputError:
    """The refusal of a folder that is there."""
    return InputError(
        f"the folder {output.name} exists already",
        field="output",
        expected="a folder that does not exist yet",
        hint="Choose another name; nothing is overwritten.",
    )

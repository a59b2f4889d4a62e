"""Places to write: names that stay inside their folder, folders that are private, outputs that can be made.

Guarantee
    A file named by a slug lies in the folder that it is written to, whatever the name was. Names whose slugs
    would meet, also where the file system ignores case, are told apart by ``slugs`` and found by ``clash``.
    What ``require_new`` accepts was possible a moment ago: a folder as long as the longest neighbour that a
    run may write under was made in the same place, a file in it was written, flushed and renamed, and all of
    it was removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import signal
import tempfile
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from stirred.errors import InputError

PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
LONGEST_SLUG = 100
FOLDERS = hasattr(os, "O_DIRECTORY")
# The neighbour of a run is named after the output, an event of the ledger (or a process) and an attempt.
_LONGEST_LABEL = "9" * 19 + "-" + "9" * 9
_LONGEST_INSIDE = Path("x" * LONGEST_SLUG, "x" * LONGEST_SLUG, "x" * (LONGEST_SLUG + 50))


def slug(name: str) -> str:
    """A name as part of a file name: letters, digits and ``_ - = .``, not hidden, not too long.

    A name that has to be changed gets a digest of what it was, so that different names stay different.

    Examples
    --------
    >>> slug("county=017"), slug("tenure-county")
    ('county=017', 'tenure-county')
    >>> slug("../../etc").startswith("etc-")
    True
    """
    text = unicodedata.normalize("NFC", name)
    plain = "".join(c if c.isalnum() or c in "_-=." else "-" for c in text).strip(".-")
    if plain == name and 0 < len(plain.encode()) <= LONGEST_SLUG:
        return plain
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    head = plain.encode()[: LONGEST_SLUG - len(digest) - 1].decode(errors="ignore").rstrip(".-")
    return f"{head or 'name'}-{digest}"


def slugs(names: Iterable[str]) -> list[str]:
    """Slugs of some names, told apart even where the file system ignores case."""
    out: list[str] = []
    taken: set[str] = set()
    for name in names:
        one, number = slug(name), 1
        while _folded(one) in taken:
            number += 1
            one = f"{slug(name)}-{number}"
        taken.add(_folded(one))
        out.append(one)
    return out


def clash(names: Iterable[str]) -> str | None:
    """The first of some names whose file would be taken for that of an earlier one."""
    seen: set[str] = set()
    for name in names:
        folded = _folded(slug(name))
        if folded in seen:
            return name
        seen.add(folded)
    return None


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()


def inside(folder: Path, name: str | Path) -> Path:
    """The path of a file in a folder; refused where it would lie outside."""
    path = folder / name
    whole = folder.resolve()
    if path.resolve() == whole or not path.resolve().is_relative_to(whole):
        raise InputError(
            "a file would be written outside its folder",
            field="output",
            expected="a name inside the folder",
            hint="Use names without slashes and dots.",
        )
    return path


def private_folder(path: Path) -> Path:
    """Make a folder, and its parents, that nobody else may enter: from its first moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=PRIVATE_FOLDER)
    path.chmod(PRIVATE_FOLDER)
    return path


def make_private(folder: Path) -> None:
    """Close a folder and everything in it to others: 0700 and 0600."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(PRIVATE_FOLDER if path.is_dir() else PRIVATE_FILE)


def make_ordinary(folder: Path) -> None:
    """Give a folder that was made privately the mode of any other new folder; what is in it keeps its own."""
    mask = os.umask(0o077)
    os.umask(mask)
    folder.chmod(0o777 & ~mask)


def make_durable(path: Path) -> None:
    """Flush a file, or the entries of a folder, to the disk.

    A file is opened to be written, as Windows asks for. Where folders cannot be opened (Windows), renaming is
    the file system's own journal's business, and only files are flushed.
    """
    folder = path.is_dir()
    if folder and not FOLDERS:
        return
    handle = os.open(path, os.O_RDONLY if folder else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def neighbour(output: Path, label: str | int) -> Path:
    """The temporary name beside an output under which it is written."""
    if output.name in {"", ".", ".."}:
        raise InputError(
            "the output has no name",
            field="output",
            expected="the name of a folder or file to make",
            hint="Name it, for example --output release.",
        )
    return output.with_name(f".{output.name}.{label}.part")


def require_new(output: Path, *, room: int = 0) -> None:
    """Refuse, before anything is drawn or paid, an output that exists or cannot be written.

    A link that leads nowhere exists. A folder with the longest temporary name that a run may need is made and
    removed, with the parents that it needs. ``room`` is how many bytes will be written.
    """
    if os.path.lexists(output):
        raise InputError(
            f"{output.name} exists already",
            field="output",
            expected="a name that nothing has yet, not even a link",
            hint="Choose another name (--output); nothing is overwritten.",
        )
    _require_possible(neighbour(output, _LONGEST_LABEL), _LONGEST_INSIDE)
    require_room(output, room)


def require_file(output: Path) -> None:
    """Refuse, before any work, a file that cannot be written; one that exists is replaced."""
    if os.path.isdir(output) or (os.path.islink(output) and not os.path.exists(output)):
        raise InputError(
            f"{output.name} is a folder, or a link that leads nowhere",
            field="output",
            expected="the name of a file",
            hint="Choose another name.",
        )
    _require_possible(neighbour(output, _LONGEST_LABEL))


def require_room(place: Path, needed: int) -> None:
    """Refuse a place with less room than so many bytes: on the disk, or for a file of this process."""
    if needed <= 0:
        return
    folder = next(parent for parent in place.absolute().parents if parent.is_dir())
    if shutil.disk_usage(folder).free < needed or _largest_file() < needed:
        raise _no_room(needed)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.truncate(needed)
    except OSError:
        raise _no_room(needed) from None


@contextlib.contextmanager
def whole_folder(output: Path, *, room: int = 0) -> Iterator[Path]:
    """A private folder to write into, which gets its name when it is complete, or vanishes.

    Whatever is in its ``internal`` stays closed to others.
    """
    require_new(output, room=room)
    temporary = neighbour(output, f"{os.getpid()}-{secrets.token_hex(4)}")
    try:
        yield private_folder(temporary)
        if (temporary / "internal").is_dir():
            make_private(temporary / "internal")
        make_ordinary(temporary)
        temporary.rename(output)
    except OSError as error:
        raise unwritable(error) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def removed_when_terminated() -> Iterator[None]:
    """A termination becomes an ordinary exit, so that temporary folders are removed on the way."""

    def leave(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def unwritable(
    error: OSError, what: str = "the output", hint: str = "Nothing was left half-written; run again."
) -> InputError:
    """What is said of an output that could not be written."""
    return InputError(
        f"{what} could not be written ({error.strerror or 'input or output failed'})",
        field="output",
        expected="a folder that exists or can be made, with room and permission to write",
        hint=hint,
    )


def _require_possible(probe: Path, within: Path = Path()) -> None:
    """Try a folder with its parents, and a path inside it: in a place of its own, which is removed.

    A file is written there, flushed and renamed, as everything will be. The place lies where the first of
    them would be made, so that runs that try the same name do not meet.
    """
    missing, place = Path(probe.name), probe.parent
    while not os.path.lexists(place):
        missing, place = place.name / missing, place.parent
    own = None
    try:
        own = Path(tempfile.mkdtemp(prefix=".stirred-", dir=place))
        (own / missing / within).mkdir(parents=True)
        file = own / "file"
        file.write_bytes(b"-")
        make_durable(file)
        file.replace(own / "renamed")
        make_durable(own)
    except (OSError, ValueError) as error:
        known = error if isinstance(error, OSError) else OSError()
        raise unwritable(known, hint="Choose another place or a shorter name.") from None
    finally:
        if own is not None:
            shutil.rmtree(own, ignore_errors=True)


def _largest_file() -> float:
    try:
        import resource
    except ImportError:
        return float("inf")
    soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return float("inf") if soft == resource.RLIM_INFINITY else soft


def _no_room(needed: int) -> InputError:
    return InputError(
        "there is not enough room for the output",
        field="output",
        expected=f"about {max(1, needed >> 20):,} MiB, on the disk and within the limit of this process",
        hint="Free some space or raise the limit (ulimit -f); nothing was drawn or spent.",
    )

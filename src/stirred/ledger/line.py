"""The line of writers: whoever comes first is served first.

Guarantee
    Of several that want to write, in threads or processes, each waits for those who came before it and for
    nobody else, one at a time. A place in line ends with its process, however that ends. Nobody is refused
    here, and what must be exclusive is the database's business: the line is there so that the database's own
    waiting, which leaves the turn to chance and starves some, is hardly ever needed.
Assumes
    One machine, and locks that belong to an open file, as Linux has them. Elsewhere, and where the file
    beside the ledger cannot be opened for writing, nobody waits here, and the database's own waiting remains.

How
    A place is an exclusive lock on one byte of an empty file: the byte whose number is the moment of arrival,
    in nanoseconds since the machine was started. It is one's turn when no byte before it is locked. There is
    no counter that a crash could spoil, nothing in the file that tells anything, and no way for a late comer
    to push in, as there is with a single lock for which all wait. Waiting is asking for a shared lock on the
    byte of somebody in front: the system wakes exactly those who wait for whoever goes. A thread asks, with
    a handle of its own, so that patience can end; a shared lock is no place, and is given back at once.

If whoever is in front has not moved for ``STANDSTILL`` seconds (a process was stopped, or writes for long),
whoever waits goes on to the database: it knows whether it is held, and if it is not, nobody need wait.
"""

from __future__ import annotations

import contextlib
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

try:
    from fcntl import F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW, F_RDLCK, F_UNLCK, F_WRLCK, fcntl
except ImportError:
    LOCKS = False
else:
    LOCKS = True

STANDSTILL = 5.0
# It is nearly one's turn when so many are ahead.
_SOON = 1
# In seconds: before looking again where nobody had gone, and how long to knock at the door.
_PAUSE, _KNOCK = 0.001, 0.1
_FLOCK, _END, _DOOR, _HEAD = "hhqqi0q", 2**62, 2**62 + 1, 2**62 + 2

_open: set[int] = set()
_guard = threading.Lock()


@contextlib.contextmanager
def in_line(path: Path, patience: float, soon: Callable[[], None]) -> Iterator[float]:
    """Wait for those who came before, at most so long; what is left of the patience is the answer.

    One's place is kept until the block is left. ``soon`` is called once, shortly before one's turn.
    """
    begun, process = time.monotonic(), os.getpid()
    handle = _opened(path) if LOCKS else None
    try:
        if handle is not None:
            _wait(path, handle, begun + patience, soon)
        yield max(0.0, begun + patience - time.monotonic())
    finally:
        # In a child that was forked inside the block the handle is closed already.
        if handle is not None and os.getpid() == process:
            _leave(handle)


def _opened(path: Path) -> int | None:
    """A handle of one's own, which threads do not share; nothing where the file cannot be had."""
    with _guard:
        try:
            handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            return None
        _open.add(handle)
        return handle


def _leave(handle: int) -> None:
    with _guard:
        _open.remove(handle)
        os.close(handle)


def _wait(path: Path, handle: int, until: float, soon: Callable[[], None]) -> None:
    place = _taken(handle, until)
    near, front = _near(handle, place), _front(handle, place)
    since, called = time.monotonic(), False
    while near:
        if len(near) <= _SOON and not called:
            called = True
            soon()
        left = min(until, since + STANDSTILL) - time.monotonic()
        if left <= 0:
            return
        # Of many in front, the nearest are waited for when the others have gone.
        _await(path, near[-1], left)
        before, near = (front, near), _near(handle, place)
        front = _front(handle, place)
        if (front, near) != before:
            since = time.monotonic()
        else:
            time.sleep(_PAUSE)


def _await(path: Path, place: int, seconds: float) -> None:
    """Wait until whoever has a place has gone, at most so long."""
    gone = threading.Event()

    def ask() -> None:
        handle = _opened(path)
        try:
            if handle is not None:
                with contextlib.suppress(OSError):
                    _lock(handle, F_RDLCK, place, wait=True)
                _leave(handle)
        finally:
            gone.set()

    threading.Thread(target=ask, daemon=True).start()
    gone.wait(seconds)


def _taken(handle: int, until: float) -> int:
    """Take the byte of this moment; whoever finds somebody behind was late to take it, and goes behind them.

    So no two are ever served at once: of two places the later one was taken before the earlier one, or waits.
    At the door one comes after the other, so that hardly anybody is late; who stops there keeps nobody out.
    """
    with _door(handle):
        while time.monotonic() < until:
            place = time.monotonic_ns()
            try:
                _lock(handle, F_WRLCK, place)
                if _some(handle, place + 1, _END) is None:
                    return place
                _lock(handle, F_UNLCK, place)
            except (BlockingIOError, PermissionError):
                pass
            except OSError:
                break
            time.sleep(_PAUSE / 10)
    # A file system without such locks, or a file that somebody else has locked: the database decides.
    return 0


@contextlib.contextmanager
def alone(path: Path, seconds: float) -> Iterator[bool]:
    """Whether nobody else is in here with us: at most so long is waited for whoever is.

    Where there are no locks everybody is let in.
    """
    handle = _opened(path) if LOCKS else None
    if handle is None:
        yield True
        return
    process = os.getpid()
    try:
        with _held(handle, _HEAD, seconds) as held:
            yield held
    finally:
        if os.getpid() == process:
            _leave(handle)


def _door(handle: int) -> contextlib.AbstractContextManager[bool]:
    """Be alone for a moment; not for long, and not at any price."""
    return _held(handle, _DOOR, _KNOCK)


@contextlib.contextmanager
def _held(handle: int, byte: int, seconds: float) -> Iterator[bool]:
    """One byte for oneself, if it can be had in time; where the file system has no locks it is nobody's."""
    until, held, free = time.monotonic() + seconds, False, False
    while not (held or free) and time.monotonic() < until:
        try:
            _lock(handle, F_WRLCK, byte)
            held = True
        except (BlockingIOError, PermissionError):
            time.sleep(_PAUSE / 10)
        except OSError:
            free = True
    try:
        yield held or free
    finally:
        if held:
            _lock(handle, F_UNLCK, byte)


def _lock(handle: int, kind: int, place: int, *, wait: bool = False) -> None:
    asked = struct.pack(_FLOCK, kind, os.SEEK_SET, place, 1, 0)
    fcntl(handle, F_OFD_SETLKW if wait else F_OFD_SETLK, asked)


def _near(handle: int, place: int) -> list[int]:
    """The places right before one's own that are taken, nearest first: as many as matter."""
    found: list[int] = []
    while len(found) <= _SOON and (last := _last(handle, place)) is not None:
        found.append(last)
        place = last
    return found


def _last(handle: int, end: int) -> int | None:
    """The last place before an end that somebody else has taken."""
    found, start = None, 0
    while (place := _some(handle, start, end)) is not None:
        found, start = place, place + 1
    return found


def _front(handle: int, end: int) -> int | None:
    """The first place before an end that somebody else has taken."""
    found = None
    while (place := _some(handle, 0, end)) is not None:
        found = end = place
    return found


def _some(handle: int, start: int, end: int) -> int | None:
    """Some place in a range that somebody else has taken."""
    if end <= start:
        return None
    asked = struct.pack(_FLOCK, F_RDLCK, os.SEEK_SET, start, end - start, 0)
    kind, _, place, _, _ = struct.unpack(_FLOCK, fcntl(handle, F_OFD_GETLK, asked))
    return None if kind == F_UNLCK else place


def _forked() -> None:
    """A child stands in no line: with its parent's handles it would keep the places of a dead process."""
    for handle in _open:
        with contextlib.suppress(OSError):
            os.close(handle)
    _open.clear()
    _guard.release()


if LOCKS:
    os.register_at_fork(before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_forked)

"""Kernels: functions of arrays that Numba compiles when they are first called.

Guarantee
    A kernel gives the same results whether its machine code comes from a cache or was compiled just now, and
    it works where nothing can be cached: for a user without a home, in an installation that is read-only,
    on a disk that is full, with a cache that is damaged. Numba is imported when the first kernel is called,
    not before.
Assumes
    A kernel is a pure function of its arguments, and never reads or writes files: an ``OSError`` out of one
    is the cache's, raised before the kernel began.

A cache of machine code is code. Numba keeps it beside the source, or in the user's own cache folder, or in
``NUMBA_CACHE_DIR``, which nobody else should be able to write.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import threading
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_LOCK = threading.RLock()
_NOWHERE = "cannot cache function"
# What comes out of a cache that cannot be written, or whose files are damaged.
_UNREADABLE = (OSError, EOFError, pickle.UnpicklingError)

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)


class Kernel(Generic[P, R]):
    """A function that is compiled when it is first called; see ``kernel``."""

    def __init__(self, function: Callable[P, R], options: dict[str, Any]) -> None:
        assert isinstance(function, FunctionType)
        self.function, self._options = function, options
        self._compiled: Callable[P, R] | None = None
        self._cached = not options.get("inline")
        self.__doc__, self.__name__, self.__module__ = (
            function.__doc__,
            function.__name__,
            function.__module__,
        )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        compiled = self._compiled or self.compiled()
        try:
            return compiled(*args, **kwargs)
        except _UNREADABLE:
            return self._without_cache()(*args, **kwargs)

    def compiled(self) -> Callable[P, R]:
        """What Numba makes of the function, and of the kernels that it calls."""
        with _LOCK:
            if self._compiled is None:
                self._compiled = self._made()
            return self._compiled

    def _made(self) -> Callable[P, R]:
        from numba import njit

        code, known = self.function.__code__, self.function.__globals__
        called = {name: known[name] for name in code.co_names if isinstance(known.get(name), Kernel)}
        whole = known | {name: inner.compiled() for name, inner in called.items()}
        function = FunctionType(code, whole, code.co_name, self.function.__defaults__)
        function.__qualname__, function.__module__ = self._name(called), self.function.__module__
        if self._cached:
            try:
                return _typed(njit(cache=True, **self._options)(function))
            except RuntimeError as error:
                if _NOWHERE not in str(error):
                    raise
        return _typed(njit(**self._options)(function))

    def _name(self, called: Mapping[str, Kernel[..., Any]]) -> str:
        """What the machine code is kept under: it is that of the kernels that are called as well.

        Numba looks at the caller's file alone, and would take old code for new where they lie in another.
        """
        name = self.function.__qualname__
        return f"{name}_{_digest(called.values())}" if called else name

    def _without_cache(self) -> Callable[P, R]:
        """Compile again, this kernel and those that it calls, and keep nothing."""
        with _LOCK:
            for name in self.function.__code__.co_names:
                inner = self.function.__globals__.get(name)
                if isinstance(inner, Kernel):
                    inner._without_cache()
            self._cached, self._compiled = False, None
            return self.compiled()


def _digest(kernels: Iterable[Kernel[..., Any]]) -> str:
    """A short digest of the text of some kernels, and of those that they call."""
    whole = hashlib.sha256()
    for one in kernels:
        code, known = one.function.__code__, one.function.__globals__
        inner = [known[name] for name in code.co_names if isinstance(known.get(name), Kernel)]
        constants = [known[name] for name in code.co_names if isinstance(known.get(name), int | float)]
        text = (code.co_code.hex(), repr(code.co_consts), code.co_names, constants, one._options)
        whole.update(repr((text, _digest(inner))).encode())
    return whole.hexdigest()[:16]


def kernel(**options: Any) -> Callable[[Callable[P, R]], Kernel[P, R]]:
    """Make a function a kernel: without the interpreter's lock, and cached where that is possible.

    Parameters
    ----------
    options
        What Numba takes besides: ``inline="always"`` for a piece of other kernels, ``fastmath``.

    Examples
    --------
    >>> import numpy as np
    >>> @kernel()
    ... def doubled(values):
    ...     return values + values
    >>> doubled(np.arange(3))
    array([0, 2, 4])
    """
    if "inline" not in options:
        options = {"nogil": True} | options
    return lambda function: Kernel(function, options)


def _typed(made: Any) -> Callable[P, R]:
    return made  # type: ignore[no-any-return]

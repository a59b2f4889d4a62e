"""Every kernel does compiled what its Python text does: each branch of it, on small inputs.

Calling the text itself is also how coverage sees into kernels: compiled code cannot be traced.
"""

from __future__ import annotations

import copy
import importlib
import pickle
import pkgutil
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stirred
from stirred.compiled import Kernel, kernel
from stirred.noise import TestSource
from stirred.noise.law import gaussian_law, laplace_law
from stirred.noise.table import table

Case = tuple[Any, ...]


def kernels() -> dict[str, Kernel[..., Any]]:
    """Every kernel of the package, by module and name."""
    found = {}
    for module in pkgutil.walk_packages(stirred.__path__, "stirred."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, Kernel) and value.__module__ == module.name:
                found[f"{module.name.removeprefix('stirred.')}.{name}"] = value
    return found


def words(count: int, seed: int = 1) -> Any:
    return TestSource(seed).words(count).copy()


def ints(*values: int) -> Any:
    return np.array(values, dtype=np.int64)


def noise_cases(name: str) -> Iterator[Case]:
    """Words at random, and words at and beside every kind of threshold, of narrow and of wide laws."""
    for law in (
        gaussian_law(Fraction(9, 4)),
        laplace_law(Fraction(1, 2)),
        gaussian_law(Fraction(10**7)),
        gaussian_law(Fraction(10**28)),
        laplace_law(Fraction(10**5)),
    ):
        made = table(law)
        levels = made.thresholds
        near = np.concatenate([levels[:40], levels[:40] + np.uint64(1), levels[-3:], np.diff(levels[:40])])
        drawn = np.concatenate([words(300), near, np.array([0, 1, 2, 3], dtype=np.uint64)])
        if name == "draw_words":
            out, pending = np.zeros(drawn.size, dtype=np.int64), np.zeros(drawn.size, dtype=np.int64)
            yield drawn, levels, made.guide, made.shift, out, pending
        elif name == "settle":
            pending, out = np.arange(drawn.size), np.zeros(drawn.size, dtype=np.int64)
            further = words(drawn.size, 2)
            yield drawn, further, pending, levels, made.guide, made.shift, made.rises, made.curved, out
        elif name == "_find":
            yield from ((np.uint64(word), levels, made.guide) for word in drawn[:50])
        elif name == "_drop":
            yield from ((levels, m) for m in range(3))
        elif name == "_under_the_curve" and made.shift:
            low = [int(word) % int(levels[0]) for word in drawn] + [int(levels[0]) - 1, 0, 1]
            for i, number in enumerate(low):
                place = (int(words(1, 3)[0]) + 7 * i) % (1 << made.shift)
                yield np.uint64(number), place, levels, made.shift, made.rises, made.curved
        elif name == "_loss" and made.shift:
            for m in range(0, min(30, made.rises.size), 7):
                yield from (
                    (place, made.shift, int(made.rises[m]) >> 1, made.curved)
                    for place in (0, 1, (1 << made.shift) - 1)
                )


def matrices(seed: int = 1) -> tuple[Any, ...]:
    """Three children of two kinds on four cells, with one row: what the solver's steps read and write."""
    rng = np.random.default_rng(seed)
    rows = np.array([[1.0, 1, 0, 0]])
    forms = [np.eye(4) + np.diag(rng.random(4)) for _ in range(2)]
    inverses = np.stack([np.linalg.inv(form) for form in forms])
    state = tuple(rng.random(shape) for shape in ((3, 4), (3, 4), (3, 1), (3, 1)))
    box = np.full((3, 4), 0.6), rows, np.ascontiguousarray(rows.T), np.empty((0, 0)), *rng.random((2, 3, 1))
    family = rng.random((3, 4)), np.full(4, 2.0), True, box
    correction = np.linalg.inv(2 * inverses[0] + inverses[1])
    return inverses, correction, np.array([0, 0, 1]), family, state, (np.full(3, 0.7), 3, 1.6)


def solver_cases(name: str) -> Iterator[Case]:
    inverses, correction, kinds, family, state, pace = matrices()
    linear, parent, _, box = family
    none = np.empty((0, 4)), np.empty((4, 0))
    bare = (box[0], *none, np.empty((0, 0)), np.empty((3, 0)), np.empty((3, 0)))
    still = (*state[:2], np.empty((3, 0)), np.empty((3, 0)))
    sums, x = np.zeros((3, 1)), np.random.default_rng(3).random((3, 4))
    row, other = np.zeros((1, 4)), np.zeros((1, 4))
    yield from {
        "gather_target": [
            (linear, state, box[1], pace[0], sums, x),
            (linear, still, none[0], pace[0], np.empty((3, 0)), x),
        ],
        "clip": [(x, box[3], box[0], *state[:2], 1.6), (sums, box[4], box[5], *state[2:], 1.0)],
        "clip_step": [(x, box, state, sums, 1.6), (x, bare, still, np.empty((3, 0)), 1.6)],
        "copy_of": [(x, np.zeros((3, 4)))],
        "largest_difference": [(x, state[0])],
        "residuals": [(x, sums, state, (x + 1, sums + 2))],
        "shortfall": [(x, parent, row)],
        "spread_evenly": [(x, parent, row)],
        "correct_sums": [(x, parent, inverses, correction, kinds, row, other)],
        "dense_steps": [
            (inverses, correction, kinds, family, state, pace),
            (inverses[:1], np.zeros((1, 1)), np.zeros(3, dtype=np.int64), family, state, pace),
            (inverses, correction, kinds, (linear, parent, False, bare), still, pace),
        ],
        "sum_axis": [(x.reshape(-1), np.zeros(6), 3, 2, 2), (x.reshape(-1), np.zeros(6), 6, 2, 1)],
        "spread_axis": [(np.arange(6.0), x.reshape(-1), 3, 2, 2), (np.arange(6.0), x.reshape(-1), 6, 2, 1)],
        "apply_structured": list(algebra_cases()),
        "structured_steps": [
            (*sums_of_algebra(case), (*family[:2], has_parent, box), state, pace)
            for case in algebra_cases()
            for has_parent in (True, False)
        ],
    }[name]


def algebra_cases() -> Iterator[Case]:
    """Four cells as two by two: sums over either axis and over both, plain and with a core of two."""
    table_, rng = np.random.default_rng(4).random((3, 4)), np.random.default_rng(5)
    sets, plan = (
        np.array([[0, 4], [4, 2], [6, 2], [8, 1]]),
        np.array([[1, 0, 2, 2, 1], [2, 0, 1, 2, 2], [3, 1, 1, 2, 1]]),
    )
    used = np.arange(4)
    yield table_, rng.random((4, 1, 1)), plan, sets, used, np.zeros(27), np.zeros(27)
    core = np.array([[0, 4], [4, 2]])
    yield (
        table_,
        rng.random((2, 2, 2)),
        np.array([[1, 0, 2, 2, 1]]),
        core,
        used[:2],
        np.zeros(18),
        np.zeros(18),
    )


def sums_of_algebra(case: Case) -> Case:
    return case[1:5]


def cases(full: str) -> Iterator[Case]:
    """The cases of a kernel."""
    module, name = full.rsplit(".", 1)
    if module == "noise.table":
        yield from noise_cases(name)
        return
    if module == "topdown.admm":
        yield from solver_cases(name)
        return
    few = words(40).view(np.uint32)
    codes, flags = ints(2, 0, 2, 1, 0, 2).astype(np.int32), np.array([True, False, True, True, True, True])
    offsets, chosen = ints(0, 2, 3, 6), np.arange(6, dtype=np.int32)
    grouped = np.array([1, 4, 3, 0, 2, 5], dtype=np.int32)
    hashes = words(6, 2)
    nobody = np.empty(0, dtype=np.bool_)
    scratch = tuple(np.zeros(16, dtype=np.int64) for _ in range(5))
    known: dict[str, list[Case]] = {
        "noise.shuffle.below": [
            (few, 0, 5),
            (few, 0, 2**31 + 1),
            (few[:0], 0, 5),
            (few[:1] * 0, 0, 2**32 - 1),
        ],
        "noise.shuffle._shuffle_down": [(np.arange(9), 8, few), (np.arange(9), 8, few[:3])],
        "data.kernel.append_digit": [(codes.copy(), ints(5, 6, 7, 5, 6, 7), np.int64(5), np.int64(3))],
        "data.kernel.renumber": [(ints(9, 4, 9, 0), 12)],
        "data.kernel.same_images": [
            (ints(3, 4, 3), np.int64(3), ints(1, 2, 1), ints(0, 0), np.zeros(2, dtype=np.bool_)),
            (ints(3, 4, 3), np.int64(3), ints(1, 2, 9), ints(0, 0), np.zeros(2, dtype=np.bool_)),
        ],
        "data.kernel.group_rows": [(codes, chosen, offsets)],
        "data.kernel.count_cells_of": [
            (chosen, ints(7, 7, 7 + 2**17, 8, 7 + 16, 7), scratch[:3], np.zeros(6, dtype=np.int64))
        ],
        "data.kernel.count_two_tables": [
            (grouped, offsets, 0, 3, ints(1, 2, 1, 1, 2, 1), ints(4, 4, 4, 5, 6, 7), scratch),
            (grouped, ints(0, 0, 6), 0, 2, ints(1, 1, 1, 1, 1, 2), ints(4, 4, 4, 4, 4, 7), scratch),
        ],
        "data.kernel.mix_rows": [(hashes, ints(-1, 0, 1, 2, 3, 2**62), np.uint64(2**63 + 5))],
        "data.kernel.hash_texts": [
            (np.frombuffer(b"abcdef", dtype=np.uint8), ints(0, 2, 6), np.uint64(3), np.uint64(2**64 - 5))
        ],
        "swap.kernel.count_by_stratum": [(codes, chosen[::2], 3)],
        "swap.kernel.count_all": [(codes, flags, 3), (codes, nobody, 3)],
        "swap.kernel.mark_mixed": [
            (codes, ints(1, 1, 2, 1, 1, 1), able, ints(0, 0, 0), *np.zeros((2, 3), dtype=np.bool_))
            for able in (flags, nobody)
        ],
        "swap.kernel.derange_groups": [
            (ints(0, 1, 3, 9), 0, 3, few, np.zeros(9, dtype=np.int32)),
            (ints(0, 1, 3, 9), 0, 3, few[:4], np.zeros(9, dtype=np.int32)),
            *(
                (ints(0, 3), 0, 1, words(9, seed).view(np.uint32), np.zeros(3, dtype=np.int32))
                for seed in range(9)
            ),
        ],
        "swap.kernel.donors_of": [(grouped, offsets, ints(1, 0, 0, 2, 0, 1), np.arange(6))],
    }
    yield from known[full]


@pytest.mark.parametrize("name", sorted(kernels()))
def test_compiled_code_does_what_the_text_does(name: str) -> None:
    found, count = kernels()[name], 0
    for case in cases(name):
        count += 1
        first, second = copy.deepcopy(case), copy.deepcopy(case)
        compiled = found(*first)
        with np.errstate(over="ignore"):
            plain = found.function(*second)
        same((compiled, first), (plain, second))
    assert count


def same(one: Any, other: Any) -> None:
    if isinstance(one, tuple):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            same(left, right)
    elif isinstance(one, np.ndarray) and one.dtype.kind == "f":
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-12, abs=1e-12)
    elif isinstance(one, np.ndarray):
        assert (one == other).all() and one.dtype == other.dtype
    else:
        assert one == other


@kernel()
def halved(values: Any) -> Any:
    return half_of(values)


@kernel(inline="always")
def half_of(values: Any) -> Any:
    return values // 2


def test_a_full_disk_under_the_cache_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Numba raises when it cannot save is an OSError: everything is compiled again, and not kept."""
    fresh: Kernel[..., Any] = Kernel(halved.function, {"nogil": True})
    honest, calls = fresh._made, []

    def made() -> Any:
        compiled = honest()
        calls.append(fresh._cached)

        def call(*args: Any) -> Any:
            if fresh._cached:
                raise OSError(28, "No space left on device")
            return compiled(*args)

        return call

    monkeypatch.setattr(fresh, "_made", made)
    assert fresh(ints(7, 8)).tolist() == [3, 4]
    assert calls == [True, False]
    assert fresh(ints(9)).tolist() == [4]


def test_where_no_cache_can_be_kept_kernels_are_compiled_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source in a place that cannot be written, and no other place: what Numba calls no locator."""
    import numba
    from numba.core import caching

    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    with pytest.raises(RuntimeError, match="cannot cache function"):
        numba.njit(cache=True)(halved.function)
    fresh: Kernel[..., Any] = Kernel(halved.function, {"nogil": True})
    assert fresh(ints(7, 8)).tolist() == [3, 4]


def test_numba_is_not_imported_before_a_kernel_is_called() -> None:
    import subprocess
    import sys

    program = (
        "import sys, stirred as st, polars as pl\n"
        "import stirred.swap.kernel, stirred.noise.table, stirred.data.kernel, stirred.topdown.admm\n"
        "assert 'numba' not in sys.modules\n"
        "st.Swap(match=(), swap=('a',), rate='1/2').release(pl.DataFrame({'a': [1, 2], 'b': [1, 2]}))\n"
        "assert 'numba' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("error", [EOFError("Ran out of input"), pickle.UnpicklingError("invalid load key")])
def test_a_damaged_cache_is_no_obstacle(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh: Kernel[..., Any] = Kernel(halved.function, {"nogil": True})
    honest = fresh._made

    def made() -> Any:
        compiled = honest()

        def call(*args: Any) -> Any:
            if fresh._cached:
                raise error
            return compiled(*args)

        return call

    monkeypatch.setattr(fresh, "_made", made)
    assert fresh(ints(7, 8)).tolist() == [3, 4]


def test_machine_code_is_kept_under_a_name_that_says_which_kernels_it_calls() -> None:
    """Old code of a caller would otherwise be used with the new text of what it calls, in another file."""

    def third_of(values: Any) -> Any:
        return values // 3

    calls = {"half_of": half_of}
    other = {"half_of": Kernel(third_of, {"inline": "always"})}
    names = {halved._name(calls), halved._name(calls), halved._name(other), halved._name({})}
    assert len(names) == 3


def test_a_fork_while_another_thread_holds_the_locks_does_not_stop_the_child() -> None:
    import subprocess
    import sys

    program = (
        "import os, threading, time\n"
        "from fractions import Fraction\n"
        "from stirred import balls, compiled\n"
        "from stirred.noise import TestSource, discrete_laplace\n"
        "held, go = threading.Event(), threading.Event()\n"
        "def hold():\n"
        "    with balls.PRECISION, compiled._LOCK:\n"
        "        held.set()\n"
        "        time.sleep(0.5)\n"
        "threading.Thread(target=hold).start()\n"
        "held.wait()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    discrete_laplace(TestSource(1), Fraction(7), 5)\n"
        "    os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=60)

"""stirred: disclosure avoidance for censuses and surveys.

A guarantee is never a bare epsilon. It is a specification of five building blocks: domain, multiverse
(invariants), input premetric (protection unit), output premetric, budget.

A guarantee is a ``Specification`` with its ``Budget``: ``compare``, ``compose`` and ``convert`` them, and
find those of the literature in the ``catalogue``. ``read`` reads data; ``Swap`` and ``TopDown`` protect them;
a ``Ledger`` keeps what was spent. Behind these are rooms: ``spec``, ``data``, ``swap``, ``topdown``,
``release`` (by a plan), ``audit`` and ``museum``. Each name is imported when it is first used.

Examples
--------
>>> import polars as pl
>>> import stirred as st
>>> frame = pl.DataFrame({"size": [1, 1, 2, 2], "owner": [0, 1, 0, 1], "county": [1, 2, 1, 2]})
>>> swap = st.Swap(match=["size"], swap=["county"], rate="0.5")
>>> print(swap.release(st.read(households=frame)).specification.budget)
ε = 1.0987 in this universe
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred.doors import door
from stirred.version import __version__

if TYPE_CHECKING:
    from stirred import audit, data, museum, release, spec, swap, topdown
    from stirred.data import read
    from stirred.ledger import Ledger
    from stirred.spec import Budget, Specification, catalogue, compare, compose, convert
    from stirred.swap import PermutationSwap as Swap
    from stirred.topdown import TopDown
else:
    __getattr__, __dir__, __all__ = door(__name__)

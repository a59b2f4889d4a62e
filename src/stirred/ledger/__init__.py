"""The ledger: what happened to which data, and what is left.

``Ledger`` records releases as events in an append-only, hash-chained file, before they are made;
accountants compose them exactly, in the flavor of each data set's ceiling. ``Equal``, ``Weighted`` and
``Accurate`` divide a budget among analysts; ``Group`` and ``Sample`` relate a release to its data set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred.doors import door

if TYPE_CHECKING:
    from stirred.ledger.account import Spend
    from stirred.ledger.allocation import Accurate, Equal, Wanted, Weighted
    from stirred.ledger.amount import Amount
    from stirred.ledger.chain import Entry, Finding, Head
    from stirred.ledger.events import Group, Sample
    from stirred.ledger.key import KeyFile
    from stirred.ledger.ledger import Ledger
    from stirred.ledger.participation import Participation
    from stirred.ledger.refusals import (
        Elsewhere,
        IncomparableFlavor,
        LedgerBusy,
        NotOpen,
        NotPermitted,
        OverBudget,
        SameData,
        TamperedLedger,
    )
    from stirred.ledger.seal import Drawing
    from stirred.ledger.sqlite import SqliteStorage
    from stirred.ledger.statement import Preview, Statement
    from stirred.ledger.storage import Storage, Transaction
    from stirred.ledger.verification import Verification
else:
    __getattr__, __dir__, __all__ = door(__name__)

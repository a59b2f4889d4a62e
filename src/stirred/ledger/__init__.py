"""The ledger: what happened to which data, and what is left.

``Ledger`` records releases as events in an append-only, hash-chained file, before they are made;
accountants compose them exactly, in the flavor of each data set's ceiling. ``Equal``, ``Weighted`` and
``Accurate`` divide a budget among analysts; ``Group`` and ``Sample`` relate a release to its data set.
"""

from stirred.ledger.account import Spend
from stirred.ledger.allocation import Accurate, Equal, Wanted, Weighted
from stirred.ledger.chain import Entry, Finding, Head
from stirred.ledger.events import Group, Sample
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

__all__ = [
    "Accurate",
    "Drawing",
    "Elsewhere",
    "Entry",
    "Equal",
    "Finding",
    "Group",
    "Head",
    "IncomparableFlavor",
    "Ledger",
    "LedgerBusy",
    "NotOpen",
    "NotPermitted",
    "OverBudget",
    "Participation",
    "Preview",
    "SameData",
    "Sample",
    "Spend",
    "SqliteStorage",
    "Statement",
    "Storage",
    "TamperedLedger",
    "Transaction",
    "Verification",
    "Wanted",
    "Weighted",
]

"""An exhibit: a bug as a small broken mechanism, its correct twin, and the audit that tells them apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stirred.audit import Finding
from stirred.noise import Source

Examine = Callable[[bool, Source], Finding]


@dataclass(frozen=True)
class Exhibit:
    """A bug of the field, or one that swapping and TopDown invite.

    Parameters
    ----------
    key
        Short name, in lower case with hyphens.
    source
        Where it was published, or ``"our own"``.
    examine
        The audit: ``examine(broken, source)`` runs it on the broken mechanism or on its twin.
    random
        Whether the audit draws: then false alarms are counted over many runs.
    """

    key: str
    title: str
    source: str
    examine: Examine
    random: bool = False

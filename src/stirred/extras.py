"""What a plain installation leaves out: the packages of every extra, and the refusal that names one.

Specifications, the ledger and swapping need none of them. Whoever needs one asks for it by ``require`` before
anything is read, spent or written.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

from stirred.errors import InputError

EXTRAS: dict[str, tuple[str, ...]] = {
    "accounting": ("dp_accounting",),
    "files": ("pyarrow",),
    "pandas": ("pandas", "pyarrow"),
    "topdown": ("ortools", "pyarrow", "scipy", "threadpoolctl"),
}
"""The packages of every extra, as they are imported; the extra ``all`` has them all."""


class MissingExtra(InputError):
    """What was asked for needs packages that are not installed."""

    code = "missing-extra"


@cache
def require(extra: str) -> None:
    """Refuse to go on without the packages of an extra.

    They are looked for, not imported: an error inside one of them is not taken for its absence.

    Raises
    ------
    MissingExtra
        If one is not installed.
    """
    missing = [package for package in EXTRAS[extra] if find_spec(package) is None]
    if missing:
        raise MissingExtra(
            f"this needs stirred[{extra}], of which {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not installed",
            field="installation",
            expected=f"stirred with the extra {extra}",
            hint=f'Run: pip install "stirred[{extra}]" (or "stirred[all]" for everything).',
        )

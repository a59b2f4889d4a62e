"""Branch coverage of every room, from the report of ``make test COVERAGE=1``; fails where one is too low.

Branches are ways out of a line that has several. What is held to the limit is the share of lines and branches
together, as coverage.py counts where it measures branches; both are printed. A module outside the rooms
counts to ``the house``.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

LEAST = 90.0


def rooms(report: Path) -> dict[str, Counter[str]]:
    """Sums of the report's counts by room."""
    out: dict[str, Counter[str]] = {}
    for name, file in json.loads(report.read_text(encoding="utf-8"))["files"].items():
        parts = Path(name).parts
        inside = parts[parts.index("stirred") + 1 :]
        room = inside[0] if len(inside) > 1 else "the house"
        counts = {key: value for key, value in file["summary"].items() if isinstance(value, int)}
        out.setdefault(room, Counter()).update(counts)
    return dict(sorted(out.items()))


def share(counts: Counter[str], kind: str, all_of: str) -> float:
    return 100.0 * counts[kind] / counts[all_of] if counts[all_of] else 100.0


def main(report: Path) -> int:
    print(f"{'room':<12}{'branches':>10}{'taken':>9}{'lines':>10}{'run':>9}")
    low, whole = [], Counter[str]()
    for room, counts in rooms(report).items():
        whole.update(counts)
        taken = share(counts, "covered_branches", "num_branches")
        run = share(counts, "covered_lines", "num_statements")
        print(
            f"{room:<12}{counts['num_branches']:>10}{taken:>8.1f}%{counts['num_statements']:>10}{run:>8.1f}%"
        )
        both = counts["covered_branches"] + counts["covered_lines"]
        low += [room] if 100.0 * both < LEAST * (counts["num_branches"] + counts["num_statements"]) else []
    taken = share(whole, "covered_branches", "num_branches")
    run = share(whole, "covered_lines", "num_statements")
    print(f"{'all':<12}{whole['num_branches']:>10}{taken:>8.1f}%{whole['num_statements']:>10}{run:>8.1f}%")
    if low:
        print(f"below {LEAST:g}% of lines and branches: {', '.join(low)}")
    return int(bool(low))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

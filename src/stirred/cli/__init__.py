"""The command line: it parses, calls and prints; all work is done by the rooms."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the ``stirred`` command; with ``--json`` even a wrong call answers in JSON."""
    from stirred.cli.app import app

    if "--json" not in sys.argv[1:]:
        app(prog_name="stirred")
    from typer.exceptions import TyperException

    from stirred.cli.output import print_json

    try:
        code = app(prog_name="stirred", standalone_mode=False)
    except TyperException as error:
        message = str(getattr(error, "format_message", error.__str__)())
        wrong = {"code": "usage", "problem": message, "field": "command line"}
        print_json({"error": wrong | {"expected": "a known command", "hint": "See stirred --help."}})
        code = 2
    sys.exit(code or 0)

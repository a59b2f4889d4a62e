"""The command line: it parses, calls and prints; all work is done by the rooms."""

from __future__ import annotations


def main() -> None:
    """Entry point of the ``stirred`` command."""
    from stirred.cli.app import app

    app(prog_name="stirred")

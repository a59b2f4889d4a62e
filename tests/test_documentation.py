"""The documentation's Python and console blocks run, and print what the pages show."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAVED = re.compile(r"\s*Save it as `([^`]+)`")
PAGES = sorted(Path("docs").rglob("*.md"))
WIDTH = "92"


def console(body: str, folder: Path) -> str:
    """The block as the terminal would show it: every command with its output."""
    commands: list[str] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            commands.append(line[2:])
        elif commands and commands[-1].endswith("\\"):
            commands[-1] += "\n" + line
    script = "mark(){ local r=$?; printf '\\001\\n'; return $r; }\n" + "".join(
        f"mark\n{c}\n" for c in commands
    )
    search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"COLUMNS": WIDTH, "PATH": search, "TERM": "dumb", "NO_COLOR": "1"}
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    shown = ""
    for command, output in zip(commands, done.stdout.split("\001\n")[1:], strict=True):
        tidy = tidied(output)
        shown += f"$ {command}\n" + (tidy if tidy.strip() else "")
    return shown


def tidied(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.rstrip("\n").split("\n")) + "\n"


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_blocks_print_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = page.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    printed, position = "", 0
    for block in FENCE.finditer(text):
        language, body = block[1], block[2]
        between, position = text[position : block.start()], block.end()
        if "<!-- skip -->" in between[-40:]:
            printed = ""
        elif language == "python":
            stream = io.StringIO()
            with contextlib.redirect_stdout(stream):
                exec(compile(body, str(page), "exec"), names)
            printed = stream.getvalue()
        elif language == "text" and printed.strip() and not between.strip():
            assert body == tidied(printed)
            printed = ""
        elif language == "console":
            assert body == console(body, tmp_path)
        elif language in {"json", "yaml"} and (saved := SAVED.match(text[block.end() :])):
            (tmp_path / saved[1]).write_text(body, encoding="utf-8")


def test_every_page_is_in_the_navigation() -> None:
    listed = Path("mkdocs.yml").read_text(encoding="utf-8")
    for page in PAGES:
        assert page.relative_to("docs").as_posix() in listed

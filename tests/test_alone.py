"""One process at a time in one place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stirred.alone import alone
from stirred.errors import InputError, Refusal


def test_a_second_run_for_one_output_is_refused_while_the_first_goes_on(tmp_path: Path) -> None:
    with alone(tmp_path / "out"):
        with pytest.raises(Refusal, match="another process"), alone(tmp_path / "out"):
            pass
        with alone(tmp_path / "other"):
            pass
    with alone(tmp_path / "out"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_what_a_dead_process_left_keeps_nobody_out(tmp_path: Path) -> None:
    dies = "import os, sys; from pathlib import Path; from stirred.alone import alone\n"
    dies += "with alone(Path(sys.argv[1])): os._exit(7)"
    done = subprocess.run([sys.executable, "-c", dies, str(tmp_path / "out")], check=False)
    assert done.returncode == 7
    assert [path.name for path in tmp_path.iterdir()] == [".out.lock.part"]
    with alone(tmp_path / "out"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_locked_for_want_of_permission_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="could not be written"), alone(tmp_path / "file" / "out"):
        pass


def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("kept")
    (tmp_path / ".out.lock.part").symlink_to(tmp_path / "kept")
    with pytest.raises(InputError, match="could not be written"), alone(tmp_path / "out"):
        pass
    assert (tmp_path / "kept").read_text() == "kept"

"""The four folders are importable below `lockgate` only: a second copy would double every class.

Ruff finds imports of bare names (TID251).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("framework", "lookup", "procedures", "pushdown")


@pytest.mark.parametrize("folder", FOLDERS)
def test_bare_names_cannot_be_imported(folder: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import {folder}"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "ModuleNotFoundError" in done.stderr


@pytest.mark.parametrize("folder", FOLDERS)
def test_links_lead_to_the_folders(folder: str) -> None:
    link = ROOT / "src" / "lockgate" / folder
    assert link.is_symlink()
    assert link.readlink() == Path("..", "..", folder)
    assert link.resolve() == ROOT / folder


def test_pytest_has_loaded_one_copy() -> None:
    assert not [name for name in sys.modules if name.split(".")[0] in FOLDERS]

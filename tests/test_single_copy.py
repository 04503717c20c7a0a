"""The four folders are importable below `lockgate` only: a second copy would double every class."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("framework", "lookup", "procedures", "pushdown")
SUSPECT = re.compile(rf"\b(from|import)\b[^\n]*(?<![\w.])({'|'.join(FOLDERS)})\b")


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


def test_nothing_imports_a_bare_name() -> None:
    wrong = []
    for folder in (*FOLDERS, "src", "tests", "examples", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text()
            # Parsing all sources takes seconds, and hardly a line looks like such an import.
            if not SUSPECT.search(text):
                continue
            for node in ast.walk(ast.parse(text, str(path))):
                names = []
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and node.level == 0:
                    names = [node.module or ""]
                wrong += [f"{path}:{node.lineno}" for name in names if name.split(".")[0] in FOLDERS]  # type: ignore[attr-defined]  # an import has names
    assert not wrong

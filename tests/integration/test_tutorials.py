"""The tutorials, block by block, in the tests' session: what they print is what they say."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import lockgate
from lockgate import Lake

TUTORIALS = sorted((Path(__file__).resolve().parents[2] / "docs" / "tutorials").glob("*.md"))
# A block of Python, and the block of text right after it, if there is one.
BLOCKS = re.compile(r"^```python\n(.*?)^```\n(?:\n```\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(
    lake: Lake,
    lake_folder: Path,
    key_file: Path,
    lookups_end: None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Iterator[Path]:
    """A folder with the tests' warehouse and key file, where `connect` returns the tests' session."""

    def connect(warehouse: str, *, keys: str, master: str) -> Lake:
        assert (warehouse, keys, master) == ("warehouse", "file:keys.json", "local[2]")
        return lake

    before = set(lake.catalog.list_namespaces())
    shutil.copy(key_file, tmp_path / "keys.json")
    (tmp_path / "warehouse").symlink_to(lake_folder / "warehouse")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lockgate, "connect", connect)
    yield tmp_path
    for name in set(lake.catalog.list_namespaces()) - before:
        lake.catalog.drop_namespace(name, cascade=True)


def in_folder(code: str, folder: Path) -> str:
    """Return a block whose folders for Spark are in `folder`: the JVM is not where the test has gone."""
    for name in ("orders", "checkpoint"):
        code = code.replace(f'"{name}"', repr(str(folder / name)))
    return code


@pytest.mark.long
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_prints_what_it_says(page: Path, folder: Path) -> None:
    blocks = BLOCKS.findall(page.read_text())
    assert sum(bool(output) for _, output in blocks) >= 4, "most steps show what they print"
    names: dict[str, object] = {"__name__": "tutorial"}
    for code, output in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(in_folder(code, folder), page.name, "exec"), names)
        assert printed.getvalue() == output, code

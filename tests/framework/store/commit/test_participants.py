"""Participants of commits are asked before, and told afterwards; the example of the documentation runs."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import CommitConflictError, PluginError
from lockgate.framework.plugins import hookimpl, plugins
from lockgate.framework.store import Catalog
from lockgate.framework.store.commit.message import CommitMessage
from lockgate.framework.store.schema.schema import Schema
from lockgate.framework.store.tables.table import Table

ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})
DOCS = Path(__file__).resolve().parents[4] / "docs" / "plugins.md"


class Witness:
    """Writes down what it hears; refuses or fails where it is told to."""

    def __init__(self, name: str, heard: list[str], fails_in: str = "") -> None:
        self.name, self.heard, self.fails_in = name, heard, fails_in

    def _hear(self, what: str, more: object = "") -> None:
        self.heard.append(f"{self.name} {what} {more}".strip())
        if what == self.fails_in:
            raise ValueError("that will not do")

    def prepare(self, request: Any) -> None:
        self._hear("prepare", request.kind.value)

    def committed(self, snapshot: Any) -> None:
        self._hear("committed", snapshot.id)

    def aborted(self) -> None:
        self._hear("aborted")


@pytest.fixture
def answers() -> Iterator[list[Any]]:
    """What a plugin answers as the participants of each commit."""
    given: list[Any] = []

    @hookimpl
    def lockgate_commit_participants(table: object) -> object:
        return given[0] if given and not isinstance(given[0], Witness) else given

    plugins().register(
        types.SimpleNamespace(lockgate_commit_participants=lockgate_commit_participants), "parts"
    )
    yield given
    plugins().unregister("parts")


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = Catalog(str(tmp_path / "w"))
    catalog.create_namespace("db")
    return catalog.create_table("db.t", Schema.from_arrow(ROWS.schema))


def test_all_hear_before_and_after(table: Table, answers: list[Any]) -> None:
    heard: list[str] = []
    answers += [Witness("a", heard), Witness("b", heard)]
    table.append(ROWS)
    assert heard == ["a prepare APPEND", "b prepare APPEND", "a committed 1", "b committed 1"]


def test_who_refuses_ends_the_commit_and_the_others_hear_it(table: Table, answers: list[Any]) -> None:
    heard: list[str] = []
    answers += [Witness("a", heard), Witness("b", heard, "prepare"), Witness("c", heard)]
    with pytest.raises(ValueError, match="will not do"):
        table.append(ROWS)
    assert heard == ["a prepare APPEND", "b prepare APPEND", "b aborted", "a aborted"]
    assert table.latest_snapshot() is None
    assert not list(Path(table.location).rglob("data-*")), "the files of the write went with it"


def test_a_commit_that_fails_is_told(table: Table, answers: list[Any]) -> None:
    (entry,) = table.manifests.live_files(table.append(ROWS))
    table.overwrite(ROWS)
    heard: list[str] = []
    answers += [Witness("a", heard)]
    with pytest.raises(CommitConflictError):
        table.commit([CommitMessage.replacing([entry])], kind="OVERWRITE")
    assert heard == ["a prepare OVERWRITE", "a aborted"]


def test_a_failure_afterwards_does_not_undo_the_commit(
    table: Table, answers: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[str] = []
    answers += [Witness("a", heard, "committed"), Witness("b", heard)]
    assert table.append(ROWS).id == 1
    assert heard[-1] == "b committed 1"
    assert "will not do" in caplog.text


def test_what_is_no_participant_is_refused(table: Table, answers: list[Any]) -> None:
    answers.append([object()])
    with pytest.raises(PluginError, match=r"'parts'.*lacks prepare"):
        table.append(ROWS)


def test_the_example_of_the_documentation_runs(table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?class Size.*?)```", DOCS.read_text(), re.DOTALL)[-1:]
    module = types.ModuleType("example")
    exec(code[code.rindex("from lockgate.plugins import hookimpl\n\n\nclass Size") :], module.__dict__)
    plugins().register(module, "example")
    try:
        table.append(ROWS)
    finally:
        plugins().unregister("example")
    assert capsys.readouterr().out == "snapshot 1\n"

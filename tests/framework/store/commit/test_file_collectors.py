"""File collectors see the rows of each new file; the example of the documentation runs."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lockgate.errors import PluginError
from lockgate.framework.plugins import hookimpl, plugins
from lockgate.framework.store import Table
from lockgate.framework.store.commit.message import CommitMessage
from lockgate.procedures import ProcedureContext, call
from lockgate.pushdown import col

DOCS = Path(__file__).resolve().parents[4] / "docs" / "plugins.md"
MakeTable = Callable[..., Table]


class Summing:
    """Collects the sum of `id`; fails where it is told to."""

    def __init__(
        self, name: str = "sums", columns: Sequence[str] | None = ("id",), fails_in: str = ""
    ) -> None:
        self.name, self.columns, self.fails_in = name, columns, fails_in
        self.seen: list[list[str]] = []

    def begin(self) -> Summing.OneFile:
        self.fail("begin")
        return self.OneFile(self)

    def fail(self, where: str) -> None:
        if where == self.fails_in:
            raise ValueError("that will not do")

    class OneFile:
        def __init__(self, owner: Summing) -> None:
            self.owner, self.sum = owner, 0

        def add(self, rows: pa.Table) -> None:
            self.owner.fail("add")
            self.owner.seen.append(rows.column_names)
            self.sum += pc.sum(rows["id"]).as_py()

        def finish(self) -> Any:
            self.owner.fail("finish")
            return str(self.sum) if self.owner.fails_in == "bytes" else str(self.sum).encode()


class Hearing:
    """A participant that keeps what collectors made."""

    def __init__(self) -> None:
        self.made: list[dict[str, bytes]] = []

    def prepare(self, request: Any) -> None:
        names = {entry.file.file_name for entry in request.changes if entry.kind == 0}
        assert set(request.collected) == names
        self.made += [dict(made) for made in request.collected.values()]

    def committed(self, snapshot: Any) -> None: ...

    def aborted(self) -> None: ...


@pytest.fixture
def collectors() -> Iterator[list[Any]]:
    """The collectors of each table."""
    given: list[Any] = []

    @hookimpl
    def lockgate_file_collectors(table: object) -> object:
        return given

    plugins().register(types.SimpleNamespace(lockgate_file_collectors=lockgate_file_collectors), "collecting")
    yield given
    plugins().unregister("collecting")


@pytest.fixture
def heard() -> Iterator[Hearing]:
    """What reaches the participants of commits."""
    hearing = Hearing()

    @hookimpl
    def lockgate_commit_participants(table: object) -> object:
        return [hearing]

    plugins().register(
        types.SimpleNamespace(lockgate_commit_participants=lockgate_commit_participants), "hearing"
    )
    yield hearing
    plugins().unregister("hearing")


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [str(number) for number in ids]})


def test_the_rows_of_a_write(make_table: MakeTable, collectors: list[Any], heard: Hearing) -> None:
    collectors += [Summing(), Summing("all", None)]
    make_table().append(rows(1, 2, 39))
    assert heard.made == [{"sums": b"42", "all": b"42"}]
    assert collectors[0].seen == [["id"]]
    assert collectors[1].seen == [["id", "v"]]


def test_each_file_by_itself(make_table: MakeTable, collectors: list[Any], heard: Hearing) -> None:
    collectors.append(Summing())
    table = make_table("keyed", primary_keys=("id",), bucket="2")
    table.append(rows(*range(100)))
    assert len(heard.made) == 2
    assert sum(int(made["sums"]) for made in heard.made) == sum(range(100))
    partitioned = make_table("parted", partition_keys=("v",))
    partitioned.append(rows(7, 8))
    assert [made["sums"] for made in heard.made[2:]] == [b"7", b"8"]


def test_files_of_others_are_read_when_they_are_committed(
    make_table: MakeTable, collectors: list[Any], heard: Hearing
) -> None:
    table = make_table()
    messages = table.write(rows(1, 2))
    assert messages[0].collected == {}
    collectors.append(Summing())
    table.commit(messages)
    assert heard.made == [{"sums": b"3"}]
    later = table.write(rows(5, 6))
    (sent,) = [CommitMessage.from_json(each.to_json(table.schema), table.schema) for each in later]
    assert sent.collected == later[0].collected != {}
    collectors[0].fails_in = "add"  # what the message tells is not read again
    table.commit([sent])
    assert heard.made[1:] == [{"sums": b"11"}]


def test_compaction_collects_too(
    make_table: MakeTable, collectors: list[Any], heard: Hearing, catalog: Any
) -> None:
    table = make_table()
    collectors.append(Summing())
    for number in range(3):
        table.append(rows(number, 10))
    call(ProcedureContext(catalog), "compact", table="db.t")
    assert heard.made[-1] == {"sums": b"33"}


@pytest.mark.parametrize("where", ["begin", "add", "finish", "bytes"])
def test_a_collector_that_fails_ends_the_write(
    make_table: MakeTable, collectors: list[Any], where: str
) -> None:
    collectors.append(Summing(fails_in=where))
    table = make_table()
    with pytest.raises(PluginError, match=r"file collector 'sums' failed on table db\.t") as caught:
        table.append(rows(1))
    assert caught.value.plugin == "collecting"
    assert table.latest_snapshot() is None
    assert not list(Path(table.location).rglob("data-*"))


def test_what_is_no_collector_is_refused(make_table: MakeTable, collectors: list[Any]) -> None:
    collectors.append(object())
    with pytest.raises(PluginError, match="lacks name, columns or begin"):
        make_table().append(rows(1))
    collectors[:] = [Summing(), Summing()]
    with pytest.raises(PluginError, match="both add file collector 'sums'"):
        make_table("other").append(rows(1))
    collectors[:] = [Summing(columns=("idd",))]
    with pytest.raises(PluginError, match="did you mean 'id'"):
        make_table("third").append(rows(1))


def test_the_example_of_the_documentation(make_table: MakeTable) -> None:
    text = DOCS.read_text().split("### lockgate_file_collectors(table)")[1]
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert code
    module = types.ModuleType("words")
    exec(compile(code[1], str(DOCS), "exec"), vars(module))
    table = make_table(columns={"id": pa.int64(), "tag": pa.string()})
    table.append(rows(0, 9).rename_columns(["id", "tag"]))  # a file that the index does not know
    plugins().register(module, "words")
    try:
        for number in (1, 2, 3):
            table.append(rows(number, 9).rename_columns(["id", "tag"]))
        plan = table.scan(predicate=col("tag") == "2")
        assert table.read(predicate=col("tag") == "2")["id"].to_pylist() == [2]
    finally:
        plugins().unregister("words")
    assert "words        2 of 3 files" in plan.report.render()

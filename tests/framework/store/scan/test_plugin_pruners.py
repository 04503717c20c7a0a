"""Pruners of plugins leave files out, by the rows of files alone; the example of the documentation runs."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lockgate.orc
from lockgate.errors import PluginError
from lockgate.framework.access import Decision
from lockgate.framework.plugins import CandidateFile, FilePruner, hookimpl, plugins
from lockgate.framework.store import Catalog, Table
from lockgate.framework.store.schema.schema import Schema
from lockgate.framework.testing.plugin_suites import PrunerConformance
from lockgate.pushdown import Predicate, col

DOCS = Path(__file__).resolve().parents[4] / "docs" / "plugins.md"
Offer = Callable[..., None]


class Holding:
    """Keeps the files that hold one of some values of column `v`; the truth, since it reads them."""

    def __init__(self, *values: str, name: str = "holding") -> None:
        self.values, self.name = set(values), name
        self.asked: list[tuple[Predicate, list[CandidateFile]]] = []

    def keeps(self, predicate: Predicate, files: Sequence[CandidateFile]) -> list[bool]:
        self.asked.append((predicate, list(files)))
        return [bool(self.values & set(values_in(file.path))) for file in files]


def values_in(path: str) -> list[Any]:
    with lockgate.orc.EncryptedOrcFile(path) as opened:
        found: list[Any] = opened.read(columns=["v"])["v"].to_pylist()
    return found


@pytest.fixture
def offer() -> Iterator[Offer]:
    """Let a plugin answer pruners for each table."""
    names: list[str] = []

    def register(*pruners: object, answer: object = None) -> None:
        @hookimpl
        def lockgate_pruners(table: object) -> object:
            return list(pruners) if answer is None else answer

        name = f"pruning {len(names)}"
        plugins().register(types.SimpleNamespace(lockgate_pruners=lockgate_pruners), name)
        names.append(name)

    yield register
    for name in names:
        plugins().unregister(name)


def rows(*pairs: tuple[int, str]) -> pa.Table:
    ids, values = zip(*pairs, strict=True)
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array(values, pa.string())})


def test_files_without_matching_rows_are_left_out(make_table: Callable[..., Table], offer: Offer) -> None:
    table = make_table()
    for number, value in enumerate("aba"):
        table.append(rows((number, value), (number + 10, "z")))
    pruner = Holding("b")
    offer(pruner)
    plan = table.scan(predicate=col("v") == "b")
    (step,) = [step for step in plan.report.steps if step.name == "holding"]
    assert (step.before.files, step.after.files, step.by) == (3, 1, "v = 'b'")
    assert "holding      1 of 3 files" in plan.report.render()
    assert table.read(predicate=col("v") == "b").to_pylist() == [{"id": 1, "v": "b"}]
    candidates = pruner.asked[0][1]
    assert [file.rows for file in candidates] == [2, 2, 2]
    assert all(Path(file.path).stat().st_size == file.size for file in candidates)
    pruner.asked.clear()
    assert table.scan().row_count == 6
    assert not pruner.asked, "without a filter there is nothing to ask"


def test_an_older_row_does_not_come_back(make_table: Callable[..., Table], offer: Offer) -> None:
    table = make_table(primary_keys=("id",), bucket="1")
    table.append(rows((1, "old"), (2, "x")))
    table.append(rows((1, "new")))
    table.append(rows((50, "other"), (60, "other")))
    offer(Holding("old"))
    assert table.read(predicate=col("v") == "old").num_rows == 0
    plan = table.scan(predicate=col("v") == "old")
    assert [file.row_count for split in plan.splits for file in split.files] == [2, 1]


def test_rows_put_together_of_several_are_not_judged_by_one_file(
    make_table: Callable[..., Table], offer: Offer
) -> None:
    columns = {"id": pa.int64(), "v": pa.string(), "w": pa.string()}
    table = make_table(columns=columns, primary_keys=("id",), bucket="1", merge__engine="partial-update")
    one = pa.table({"id": [1], "v": ["a"], "w": pa.array([None], pa.string())})
    other = pa.table({"id": [1], "v": pa.array([None], pa.string()), "w": ["b"]})
    table.append(one.cast(table.schema.arrow_schema))
    table.append(other.cast(table.schema.arrow_schema))
    offer(Holding("nothing"))
    found = table.read(predicate=(col("v") == "a") & (col("w") == "b"))
    assert found.to_pylist() == [{"id": 1, "v": "a", "w": "b"}]


class Wrong:
    """A pruner that answers what it is told to."""

    def __init__(self, answer: Any, name: Any = "wrong") -> None:
        self.answer, self.name = answer, name

    def keeps(self, predicate: Predicate, files: Sequence[CandidateFile]) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize("answer", [OSError("the index is gone"), [], [True] * 3, None])
def test_a_pruner_that_fails_ends_the_query(
    make_table: Callable[..., Table], offer: Offer, answer: object
) -> None:
    table = make_table()
    table.append(rows((1, "a")))
    offer(Wrong(answer))
    with pytest.raises(PluginError, match=r"pruner 'wrong' failed on table db\.t") as caught:
        table.scan(predicate=col("v") == "a")
    assert caught.value.plugin == "pruning 0"


@pytest.mark.parametrize("name", ["keys", "snapshot", "Upper", "", "two words", 5])
def test_names_that_steps_cannot_have(make_table: Callable[..., Table], offer: Offer, name: object) -> None:
    offer(Wrong([True], name))
    with pytest.raises(PluginError, match="pruner"):
        make_table().scan(predicate=col("v") == "a")


def test_two_pruners_of_one_name(make_table: Callable[..., Table], offer: Offer) -> None:
    offer(Holding("a"))
    offer(Holding("b"))
    with pytest.raises(PluginError, match="both add pruner 'holding'"):
        make_table().scan(predicate=col("v") == "a")


@pytest.mark.parametrize("answer", ["holding", [Holding], [object()]])
def test_what_is_no_pruner_is_refused(make_table: Callable[..., Table], offer: Offer, answer: object) -> None:
    offer(answer=answer)
    with pytest.raises(PluginError, match="lockgate_pruners"):
        make_table().scan(predicate=col("v") == "a")


def test_a_row_filter_is_asked_and_not_shown(make_table: Callable[..., Table], offer: Offer) -> None:
    table = make_table()
    table.append(rows((1, "a"), (3, "z")))
    table.append(rows((2, "b"), (4, "z")))
    pruner = Holding("a", "b", "z")
    offer(pruner)

    @hookimpl
    def lockgate_authorize(request: object) -> Decision:
        return Decision(row_filter=col("v") == "secret")

    plugins().register(types.SimpleNamespace(lockgate_authorize=lockgate_authorize), "deciding")
    try:
        report = table.scan().report
    finally:
        plugins().unregister("deciding")
    assert "holding" in [step.name for step in report.steps]
    assert "secret" not in report.render()


def people(tmp_path: Path) -> Table:
    """A table with a primary key, whose files share keys, and others of their own."""
    catalog = Catalog(tmp_path / "warehouse")
    catalog.create_namespace("db")
    schema = pa.schema([("id", pa.int64()), ("v", pa.string())])
    table = catalog.create_table(
        "db.people", Schema.from_arrow(schema, primary_keys=("id",), options={"bucket": "1"})
    )
    table.append(rows((1, "a"), (2, "b"), (3, "z")))
    table.append(rows((1, "b"), (3, "a")))
    table.append(rows((100, "a"), (101, "z")))
    table.append(rows((200, "c"), (201, "z")))
    return table


class Suite(PrunerConformance):
    """The suite, run over a pruner that tells the truth."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.people = people(tmp_path)

    def pruner(self) -> FilePruner:
        return Literals()

    def table(self) -> Table:
        return self.people

    def predicates(self) -> list[Predicate]:
        return [col("v") == value for value in ("a", "b", "bb")]


class TestHonest(Suite):
    """All tests of the suite pass."""


class Literals:
    """Keeps the files that hold the literal of a filter."""

    name = "literals"

    def keeps(self, predicate: Any, files: Sequence[CandidateFile]) -> list[bool]:
        return [predicate.literals[0].as_py() in values_in(file.path) for file in files]


class Lying(Literals):
    """Leaves out every file."""

    def keeps(self, predicate: Any, files: Sequence[CandidateFile]) -> list[bool]:
        return [False for _ in files]


class Lazy(Literals):
    """Leaves out none."""

    def keeps(self, predicate: Any, files: Sequence[CandidateFile]) -> list[bool]:
        return [True for _ in files]


class Fickle(Literals):
    """Judges a file by the number of others."""

    def keeps(self, predicate: Any, files: Sequence[CandidateFile]) -> list[bool]:
        return [len(files) > 1 for _ in files]


@pytest.mark.parametrize(
    ("pruner", "test"),
    [
        (Lying, "test_a_pruned_scan_finds_what_a_full_scan_finds"),
        (Lazy, "test_it_leaves_something_out"),
        (Fickle, "test_files_are_judged_each_by_itself"),
    ],
)
def test_the_suite_finds_pruners_that_are_wrong(tmp_path: Path, pruner: type[Literals], test: str) -> None:
    suite = Suite()
    suite.people = people(tmp_path)
    suite.pruner = pruner  # type: ignore[method-assign]  # the suite is told its pruner
    with pytest.raises(AssertionError):
        getattr(suite, test)()


def test_the_example_of_the_documentation(make_table: Callable[..., Table]) -> None:
    text = DOCS.read_text().split("### lockgate_pruners(table)")[1]
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert code
    module = types.ModuleType("tags")
    exec(compile(code[1], str(DOCS), "exec"), vars(module))
    table = make_table(columns={"id": pa.int64(), "tag": pa.string()})
    for number, value in enumerate("aba"):
        added = rows((number, value), (number + 10, "z"))
        table.append(added.rename_columns(["id", "tag"]))
    plugins().register(module, "tags")
    try:
        plan = table.scan(predicate=col("tag").isin(["b", "c"]))
    finally:
        plugins().unregister("tags")
    assert "tags         1 of 3 files" in plan.report.render()

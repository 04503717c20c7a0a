"""The suites for commit participants and file collectors: examples pass them, and broken ones do not."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from lockgate.framework.store import Catalog, Schema, Table
from lockgate.plugins import CommitParticipantConformance, FileCollectorConformance

ROWS = pa.table({"id": pa.array(range(10), pa.int64()), "tag": [f"t{number}" for number in range(10)]})


class Tables:
    folder: ClassVar[Path]
    made = 0

    @pytest.fixture(autouse=True)
    def _in_a_folder(self, tmp_path: Path) -> None:
        type(self).folder = tmp_path

    def table(self) -> Table:
        self.made += 1
        catalog = Catalog(str(self.folder / f"w{self.made}"))
        catalog.create_namespace("db")
        return catalog.create_table("db.t", Schema.from_arrow(ROWS.schema))

    def rows(self) -> pa.Table:
        return ROWS


# --- participants --------------------------------------------------------------------------------


class Names:
    """Stores the names of the files of each commit next to the table, under the name of the first."""

    def __init__(self, table: Any) -> None:
        self.folder = Path(table.location) / "names"
        self.path: Path | None = None
        self.names: list[str] = []

    def prepare(self, request: Any) -> None:
        self.names = sorted(entry.file.file_name for entry in request.changes)
        self.folder.mkdir(exist_ok=True)
        self.path = self.folder / f"{self.names[0]}.json"
        self.path.write_text("prepared")

    def committed(self, snapshot: Any) -> None:
        assert self.path is not None
        self.path.unlink()
        (self.folder / f"{snapshot.id}.json").write_text(json.dumps(snapshot.id))

    def aborted(self) -> None:
        if self.path is not None:
            self.path.unlink()


class TestNames(Tables, CommitParticipantConformance):
    def participant(self, table: Any) -> Any:
        return Names(table)

    def traces(self, table: Table) -> object:
        folder = Path(table.location) / "names"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


class Untidy(Names):
    def aborted(self) -> None: ...


class Failing(Names):
    def committed(self, snapshot: Any) -> None:
        raise OSError("the disk is full")


class Twice(Names):
    """Counts a batch of a stream once for each try."""

    def committed(self, snapshot: Any) -> None:
        super().committed(snapshot)
        count = len(list(self.folder.glob("count-*")))
        (self.folder / f"count-{count}").touch()


class Choosy(Names):
    def prepare(self, request: Any) -> None:
        if self.folder.exists():
            raise ValueError("one commit is enough")
        super().prepare(request)


class Half:
    def prepare(self, request: Any) -> None: ...


# --- collectors ----------------------------------------------------------------------------------


class Tags:
    name = "tags"
    columns = ("tag",)

    def begin(self) -> Any:
        return FileTags()


class FileTags:
    def __init__(self) -> None:
        self.found: set[str] = set()

    def add(self, rows: pa.Table) -> None:
        self.found.update(rows["tag"].to_pylist())

    def finish(self) -> Any:
        return json.dumps(sorted(self.found)).encode()


class TestTags(Tables, FileCollectorConformance):
    def collector(self) -> Any:
        return Tags()


def collector_of(made: Callable[[], Any], columns: tuple[str, ...] | None = ("tag",)) -> Any:
    class Broken(Tags):
        def begin(self) -> Any:
            return made()

    Broken.columns = columns  # type: ignore[assignment]  # None: all of them
    return Broken()


class CountsPieces(FileTags):
    pieces = 0

    def add(self, rows: pa.Table) -> None:
        self.pieces += 1

    def finish(self) -> Any:
        return str(self.pieces).encode()


class Constant(FileTags):
    def finish(self) -> Any:
        return b""


class Text(FileTags):
    def finish(self) -> Any:
        return str(self.found)


def one_for_all() -> Callable[[], FileTags]:
    shared = CountsRows()
    return lambda: shared


class CountsRows(FileTags):
    count = 0

    def add(self, rows: pa.Table) -> None:
        self.count += rows.num_rows

    def finish(self) -> Any:
        return str(self.count).encode()


# --- the suites refuse what is broken ------------------------------------------------------------


def failures(suite: Any) -> set[str]:
    """The tests of a suite that fail."""
    found = set()
    for name in dir(suite):
        if name.startswith("test_"):
            try:
                getattr(suite, name)()
            except (AssertionError, ValueError, OSError, LookupError) as error:
                found.add(f"{name}: {type(error).__name__}")
            except Exception as error:  # the plugin's own, as the manager names it
                found.add(f"{name}: {type(error).__name__}")
    return {each.partition(":")[0].removeprefix("test_") for each in found}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Untidy, {"a_commit_that_fails_leaves_nothing"}),
        (Failing, {"a_commit_passes", "commits_follow_each_other", "a_repeated_batch_is_no_error"}),
        (Twice, {"a_repeated_batch_is_no_error"}),
        (Choosy, {"commits_follow_each_other", "the_next_commit_passes_after_one_that_failed"}),
        (Half, {"a_commit_passes"}),
    ],
)
def test_broken_participants_fail(tmp_path: Path, kind: Any, expected: set[str]) -> None:
    class Broken(TestNames):
        __test__ = False
        folder = tmp_path

        def participant(self, table: Any) -> Any:
            with contextlib.suppress(TypeError):
                return kind(table)
            return kind()

    assert expected <= failures(Broken())


@pytest.mark.parametrize(
    ("collector", "expected"),
    [
        (collector_of(CountsPieces), {"pieces_do_not_matter"}),
        (collector_of(Constant), {"the_rows_decide"}),
        (collector_of(Text), {"a_commit_has_the_output", "pieces_do_not_matter"}),
        (collector_of(one_for_all()), {"files_are_apart"}),
        (collector_of(FileTags, ("no_such",)), {"it_has_a_name_and_columns_of_the_table"}),
    ],
    ids=["pieces", "constant", "text", "shared", "columns"],
)
def test_broken_collectors_fail(tmp_path: Path, collector: Any, expected: set[str]) -> None:
    class Broken(TestTags):
        __test__ = False
        folder = tmp_path

        def collector(self) -> Any:
            return collector

    assert expected <= failures(Broken())

"""Suites for authors of commit participants and file collectors: subclass one, and pytest runs it."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockgate.errors import PluginError
from lockgate.framework.plugins import CommitParticipant, FileCollection, FileCollector, hookimpl, plugins

if TYPE_CHECKING:
    from lockgate.framework.store import PreparedCommit, Snapshot, Table, TableHandle

_PIECES = (1, 3, 1024)


class CommitParticipantConformance:
    """Tests for participants of commits: they let commits pass, and leave nothing behind if one fails.

    Implement `participant`, `table` and `rows`, and `traces` if the participant stores anything.
    """

    def participant(self, table: TableHandle) -> CommitParticipant:
        """Return a participant of one commit to `table`, as the plugin's hook does."""
        raise NotImplementedError

    def table(self) -> Table:
        """Return a fresh table."""
        raise NotImplementedError

    def rows(self) -> pa.Table:
        """Return rows that fit the table, and that the participant lets pass."""
        raise NotImplementedError

    def traces(self, table: Table) -> object:
        """Return what the participant has stored for a table, for comparison; by default nothing."""
        return None

    def test_a_commit_passes(self) -> None:
        """A commit passes, and `committed` receives its snapshot without an error."""
        table = self.table()
        with self._taking_part() as asked:
            snapshot = table.append(self.rows())
        assert table.read().num_rows == self.rows().num_rows
        assert [each.calls for each in asked] == [["prepare", f"committed {snapshot.id}"]]

    def test_commits_follow_each_other(self) -> None:
        """Each commit has a participant of its own, and nothing that the first one stored stops the
        second.
        """
        table = self.table()
        with self._taking_part() as asked:
            table.append(self.rows())
            table.overwrite(self.rows())
        assert [each.calls[0] for each in asked] == ["prepare", "prepare"]
        assert table.read().num_rows == self.rows().num_rows

    def test_a_commit_that_fails_leaves_nothing(self) -> None:
        """After a failed commit nothing that `prepare` stored is left, and `aborted` raises nothing."""
        table = self.table()
        before = self.traces(table)
        # Registered first, so asked last: the participant under test has got ready by then.
        with _registered(commit_participants=lambda table: [_Refuser()]), self._taking_part() as asked:
            with contextlib.suppress(ValueError, PluginError):
                table.append(self.rows())
            assert table.latest_snapshot() is None
        assert [each.calls for each in asked] == [["prepare", "aborted"]]
        assert self.traces(table) == before, "what a failed commit has stored is still there"

    def test_the_next_commit_passes_after_one_that_failed(self) -> None:
        """Nothing left by a failed commit stops the next one."""
        table = self.table()
        with (
            _registered(commit_participants=lambda table: [_Refuser()]),
            self._taking_part(),
            contextlib.suppress(ValueError, PluginError),
        ):
            table.append(self.rows())
        with self._taking_part() as asked:
            snapshot = table.append(self.rows())
        assert asked[0].calls[-1] == f"committed {snapshot.id}"

    def test_a_repeated_batch_is_no_error(self) -> None:
        """Repeating a commit of a stream is no error, and stores nothing a second time."""
        table = self.table()
        with self._taking_part() as asked:
            first = table.commit(table.write(self.rows()), user="stream", identifier=1)
            stored = self.traces(table)
            again = table.commit(table.write(self.rows()), user="stream", identifier=1)
        assert again == first
        assert [each.calls[-1] for each in asked] == [f"committed {first.id}"] * 2
        assert self.traces(table) == stored, "the second try of a commit has stored something more"

    @contextlib.contextmanager
    def _taking_part(self) -> Iterator[list[_Recorder]]:
        asked: list[_Recorder] = []

        def participants(table: TableHandle) -> list[CommitParticipant]:
            participant = self.participant(table)
            assert isinstance(participant, CommitParticipant), f"{participant!r} lacks a method"
            asked.append(_Recorder(participant))
            return [asked[-1]]

        with _registered(commit_participants=participants):
            yield asked
        for each in asked:
            assert not each.errors, f"what is raised after a commit is lost: {each.errors[0]!r}"


class FileCollectorConformance:
    """Tests for file collectors: the output for a file depends on its rows alone.

    Implement `collector`, `table` and `rows`.
    """

    def collector(self) -> FileCollector:
        """Return the collector."""
        raise NotImplementedError

    def table(self) -> Table:
        """Return a fresh table with the collector's columns."""
        raise NotImplementedError

    def rows(self) -> pa.Table:
        """Return rows that fit the table, of which no two are alike."""
        raise NotImplementedError

    def test_it_has_a_name_and_columns_of_the_table(self) -> None:
        """The name identifies the output, and the collector gets the columns that it wants."""
        collector = self.collector()
        assert isinstance(collector, FileCollector), f"{collector!r} lacks name, columns or begin()"
        assert collector.name
        listed = self.table().schema.field_names
        assert set(collector.columns or ()) <= set(listed), f"the table has the columns {', '.join(listed)}"

    def test_pieces_do_not_matter(self) -> None:
        """Rows come in pieces of any size, and the output is the same."""
        whole = self._collect(self._wanted().num_rows)
        for size in _PIECES:
            assert self._collect(size) == whole, f"rows in pieces of {size} make another output"

    def test_files_are_apart(self) -> None:
        """A collector handles several files at a time, and an aborted one shows in no other."""
        collector, rows = self.collector(), self._wanted()
        alone = self._collect(rows.num_rows)
        given_up, first, second = collector.begin(), collector.begin(), collector.begin()
        for piece in _pieces(rows, 1):
            for each in (first, given_up, second):
                each.add(piece)
        assert [_finished(first), _finished(second)] == [alone, alone], (
            "one file shows in the output of another"
        )
        later = collector.begin()
        later.add(rows)
        assert _finished(later) == alone

    def test_a_file_without_rows(self) -> None:
        """A file may have no rows, or no piece with any."""
        nothing = _finished(self.collector().begin())
        empty = self.collector().begin()
        empty.add(self._wanted().slice(0, 0))
        assert _finished(empty) == nothing

    def test_the_rows_decide(self) -> None:
        """Other rows give another output; otherwise the output says nothing."""
        assert self._collect(1) != _finished(self.collector().begin())

    def test_a_commit_has_the_output(self) -> None:
        """Participants of the commit receive the output for each written file."""
        seen = _Seen()
        with _registered(
            file_collectors=lambda table: [self.collector()], commit_participants=lambda table: [seen]
        ):
            self.table().append(self.rows())
        assert seen.collected
        assert all(set(made) == {self.collector().name} for made in seen.collected.values())
        assert all(isinstance(output, bytes) for made in seen.collected.values() for output in made.values())

    def _wanted(self) -> pa.Table:
        columns = self.collector().columns
        return self.rows() if columns is None else self.rows().select(list(columns))

    def _collect(self, size: int) -> bytes:
        collection = self.collector().begin()
        for piece in _pieces(self._wanted(), size):
            collection.add(piece)
        return _finished(collection)


class _Recorder:
    """A participant that writes down what it hears, and what another one raises then."""

    def __init__(self, participant: CommitParticipant) -> None:
        self.participant = participant
        self.calls: list[str] = []
        self.errors: list[Exception] = []

    def prepare(self, request: PreparedCommit) -> None:
        self.calls.append("prepare")
        self.participant.prepare(request)

    def committed(self, snapshot: Snapshot) -> None:
        self.calls.append(f"committed {snapshot.id}")
        self._noted(lambda: self.participant.committed(snapshot))

    def aborted(self) -> None:
        self.calls.append("aborted")
        self._noted(self.participant.aborted)

    def _noted(self, tell: Callable[[], None]) -> None:
        try:
            tell()
        except Exception as error:  # it is logged where the suite does not run
            self.errors.append(error)


class _Refuser:
    """A participant that admits no commit."""

    def prepare(self, request: PreparedCommit) -> None:
        raise ValueError("this commit is to fail")

    def committed(self, snapshot: Snapshot) -> None: ...

    def aborted(self) -> None: ...


class _Seen:
    """A participant that keeps what collectors made."""

    def __init__(self) -> None:
        self.collected: dict[str, dict[str, bytes]] = {}

    def prepare(self, request: PreparedCommit) -> None:
        self.collected |= {file: dict(made) for file, made in request.collected.items()}

    def committed(self, snapshot: Snapshot) -> None: ...

    def aborted(self) -> None: ...


def _pieces(rows: pa.Table, size: int) -> list[pa.Table]:
    return [rows.slice(start, size) for start in range(0, rows.num_rows, size)]


def _finished(collection: FileCollection) -> bytes:
    output = collection.finish()
    assert isinstance(output, bytes), f"finish() returned {type(output).__name__}, not bytes"
    return output


@contextlib.contextmanager
def _registered(**hooks: Callable[[Any], list[Any]]) -> Iterator[None]:
    """Let tables of this process ask the hooks of these names."""
    names = {name: f"{name} under test {id(hooks)}" for name in hooks}
    for name, answer in hooks.items():
        plugins().register(types.SimpleNamespace(**{f"lockgate_{name}": _hook(answer)}), names[name])
    try:
        yield
    finally:
        for name in hooks:
            plugins().unregister(names[name])


def _hook(answer: Callable[[Any], list[Any]]) -> Callable[..., list[Any]]:
    @hookimpl
    def implementation(table: TableHandle) -> list[Any]:
        return answer(table)

    return implementation

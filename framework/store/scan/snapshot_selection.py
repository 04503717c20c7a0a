"""Selection of the part of a table's history that a query reads: a snapshot, or what was added between two.

Source: Paimon's options `scan.*` and `incremental-between*`, and its `IncrementalDeltaStartingScanner`.
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import (
    InputError,
    NotFoundError,
    OptionError,
    SnapshotNotFoundError,
    TagNotFoundError,
    UnsupportedError,
    nearest,
)
from lockgate.framework import options as table_options
from lockgate.framework.options import Option, at_least, one_of
from lockgate.framework.plugins import plugins
from lockgate.framework.store.manifests.file_table import FileTable
from lockgate.framework.store.manifests.manifest import FileKind, ManifestEntry
from lockgate.framework.store.metadata.generations import check_generation
from lockgate.framework.store.metadata.references import held_snapshot
from lockgate.framework.store.metadata.snapshot import CommitKind, Snapshot
from lockgate.framework.store.metadata.tag_files import load_tag, load_tags
from lockgate.framework.store.metadata.tag_periods import TagPeriods
from lockgate.framework.store.scan.change_files import (
    ChangeSource,
    change_files,
    change_source,
    differing_entries,
    no_list_of_files,
)
from lockgate.framework.types import parse_iso_datetime

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle

SNAPSHOT_ID = Option("scan.snapshot-id", at_least(0), 0, "the snapshot to read; 0: before the first one")
TAG_NAME = Option("scan.tag-name", str, "", "the tag to read")
VERSION = Option("scan.version", str, "", "the snapshot or tag to read, as VERSION AS OF does")
TIMESTAMP_MILLIS = Option(
    "scan.timestamp-millis", at_least(0), 0, "the time to read the table as of, in milliseconds since 1970"
)
TIMESTAMP = Option("scan.timestamp", str, "", "the time to read the table as of, in the session's time zone")
WATERMARK = Option(
    "scan.watermark",
    at_least(0),
    0,
    "the watermark to read the first snapshot of that has it, or a later one",
)
BETWEEN = Option(
    "incremental-between", str, "", "`a,b`: what was added after snapshot or tag a, up to snapshot or tag b"
)
BETWEEN_TIMES = Option(
    "incremental-between-timestamp", str, "", "`a,b`: what was added after time a, up to time b"
)
SCAN_MODE = Option(
    "incremental-between-scan-mode",
    one_of("auto", "delta", "diff", "changelog", "diff-before", "diff-after"),
    "auto",
    "auto: diff between two tags, else refuse ranges with an OVERWRITE; delta: leave out what an OVERWRITE "
    "did, as Paimon does; changelog: read the changelogs of the range; diff: the rows of the last state that "
    "the first does not have; diff-before, diff-after: the rows of either state in files that differ",
)
AUTO_TAG = Option(
    "incremental-to-auto-tag",
    str,
    "",
    "an automatic tag: the rows of its state that the automatic tag before it does not have",
)
READ_OPTIONS: dict[str, Option[object]] = {
    option.key: option  # type: ignore[misc]  # options of several types, whose values are asked for by each
    for option in (
        SNAPSHOT_ID,
        TAG_NAME,
        VERSION,
        TIMESTAMP_MILLIS,
        TIMESTAMP,
        WATERMARK,
        BETWEEN,
        BETWEEN_TIMES,
        AUTO_TAG,
        SCAN_MODE,
    )
}
# How an engine cuts and packs what a query reads, instead of as the table says.
SPLIT_OPTIONS: dict[str, Option[int]] = {
    option.key: option
    for option in (
        table_options.SOURCE_SPLIT_TARGET_SIZE,
        table_options.SOURCE_SPLIT_OPEN_FILE_COST,
        table_options.SOURCE_SPLIT_DRIVER_MAX_SIZE,
    )
}
_WATERMARK_VERSION = "watermark-"
_NUMBER = re.compile(r"[0-9]{1,18}")
_NO_WATERMARK = -(2**63)
# Options that Spark itself uses and leaves among the others.
_SPARKS = ("versionAsOf", "timestampAsOf")
SNAPSHOT_SOURCE = Option(
    "scan.snapshot-source",
    str,
    "",
    "the system table that chooses each plan's snapshot; Spark only",
)


@checked_arguments
@dataclass(frozen=True)
class Between:
    """Snapshots with after < id <= upto; what OVERWRITE snapshots did is refused, or left out.

    `of_changelogs`: their changelogs are read in place of the rows that they added. `states` compares the
    states after snapshots `after` and `upto` instead: `diff` are the rows of the second that the first does
    not have, `before` and `after` the rows of either in files that differ, or `whole` in all files: which
    ones differ tells of hidden rows.
    """

    after: int
    upto: int
    leave_out_overwrites: bool = False
    of_changelogs: bool = False
    states: str = ""
    whole: bool = False

    @property
    def end(self) -> int:
        """The number of the snapshot whose rows are read, 0 for none."""
        return self.after if self.states == "before" else self.upto


@dataclass(frozen=True)
class Selection:
    """The snapshot that a query names (0: the empty table), or a range; neither: nothing was named."""

    snapshot_id: int | None = None
    between: Between | None = None

    @property
    def options(self) -> dict[str, str]:
        """The read options that select the same snapshot."""
        return {} if self.snapshot_id is None else {SNAPSHOT_ID.key: str(self.snapshot_id)}


def selection_of(table: TableHandle, options: Mapping[str, str], zone: str = "UTC") -> Selection:
    """Return what the read options of a query select; their case does not matter.

    `zone` is the time zone of times written as text. Raises OptionError for an option that is unknown,
    malformed or in contradiction to another, SnapshotNotFoundError and TagNotFoundError.
    """
    given = _checked(options)
    named = [key for key in given if key not in (SCAN_MODE.key, *_SPARKS, *SPLIT_OPTIONS)]
    states = [*named, *(key for key in given if key in _SPARKS)]
    if len(states) > 1:
        raise OptionError(
            f"options {' and '.join(map(repr, states))} contradict each other: give one of them"
        )
    if not named:
        if SCAN_MODE.key in given:
            raise OptionError(f"option {SCAN_MODE.key!r} needs option {BETWEEN.key!r}")
        return Selection()
    key, text = named[0], given[named[0]].strip()
    if key == AUTO_TAG.key:
        return Selection(between=_to_tag(table, text, _states(given.get(SCAN_MODE.key, "diff")) or "diff"))
    if key in (BETWEEN.key, BETWEEN_TIMES.key):
        return Selection(between=_between(table, key, text, given.get(SCAN_MODE.key, "auto"), zone))
    if SCAN_MODE.key in given:
        raise OptionError(f"option {SCAN_MODE.key!r} has no meaning with option {key!r}")
    if key == TIMESTAMP.key:
        return Selection(snapshot_at(table, text_millis(key, text, zone)))
    if key == TIMESTAMP_MILLIS.key:
        return Selection(snapshot_at(table, int(text)))
    if key == WATERMARK.key:
        return Selection(snapshot_with_watermark(table, int(text)).id)
    if key == TAG_NAME.key:
        return Selection(_tagged(table, text).id)
    if key == VERSION.key:
        return Selection(held_snapshot(table, number_called(table, text)).id)
    number = int(text)
    return Selection(held_snapshot(table, number).id if number else 0)


def split_sizes(table: TableHandle, options: Mapping[str, str]) -> dict[str, int | None]:
    """Return in bytes what a query's options, else the table's, say of splits; None where neither says it.

    The names are those of SPLIT_OPTIONS. Raises OptionError for a malformed size.
    """
    asked = {key.lower(): text for key, text in options.items()}
    found: dict[str, int | None] = {}
    for key, option in SPLIT_OPTIONS.items():
        text = asked.get(key, table.schema.options.get(key))
        found[key] = None if text is None else option.value_of(text)
    return found


def _checked(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options that say what to read, by their proper names; OptionError for any other."""
    proper = {key.lower(): key for key in (*READ_OPTIONS, *_SPARKS, *SPLIT_OPTIONS)}
    declared = {key.lower(): option for key, option in plugins().options("read").items()}
    found = {}
    for key, text in options.items():
        if key.lower() in declared:
            declared[key.lower()].value_of(text)
            continue
        if key.lower() == SNAPSHOT_SOURCE.key:
            raise OptionError(f"option {key!r} works only in Spark's scans of tables")
        name = proper.get(key.lower())
        if name is None and key.lower() == "branch":
            raise OptionError("a branch is read as a table of its own: `table$branch_name`")
        if name is None and key in table_options.known_options():
            raise OptionError(f"option {key!r} belongs to the table, not to a query: set it by ALTER TABLE")
        if name is None:
            raise OptionError(f"unknown read option {key!r}{nearest(key, [*proper.values(), *declared])}")
        if name in READ_OPTIONS:
            READ_OPTIONS[name].value_of(text)
        elif name in SPLIT_OPTIONS:
            SPLIT_OPTIONS[name].value_of(text)
        found[name] = text
    return found


def number_called(table: TableHandle, version: str) -> int:
    """Return the number of the snapshot that a version names: a tag, else `watermark-<millis>` or a number.

    As in Paimon a tag goes first, also one whose name is a number. `watermark-<millis>` is the first snapshot
    with that watermark. A number need not be that of a snapshot. Raises NotFoundError, and UnsupportedError
    for a tag whose number another snapshot has after a rollback.
    """
    version = version.strip()
    try:
        return _tagged(table, version).id
    except (TagNotFoundError, InputError) as error:
        mark = version.removeprefix(_WATERMARK_VERSION)
        if mark != version and _NUMBER.fullmatch(mark):
            return snapshot_with_watermark(table, int(mark)).id
        if _NUMBER.fullmatch(version):
            return int(version)
        raise TagNotFoundError(
            f"a version is the number of a snapshot or the name of a tag, not {version!r}: {error}"
        ) from None


def _tagged(table: TableHandle, name: str) -> Snapshot:
    tagged = load_tag(table, name).snapshot
    if held_snapshot(table, tagged.id) != tagged:
        raise UnsupportedError(
            f"after a rollback another snapshot has number {tagged.id}: read tag {name!r} by "
            "Table.read(tag=...)"
        )
    return tagged


def snapshot_at(table: TableHandle, millis: int) -> int:
    """Return the newest snapshot of a time or before, in milliseconds since 1970; NotFoundError if none."""
    found = _at(table, millis)
    if found is None:
        raise NotFoundError(f"table {table.identifier} has no snapshot from that time or before")
    return found


def snapshot_with_watermark(table: TableHandle, watermark: int) -> Snapshot:
    """Return the first snapshot whose watermark, in milliseconds, is that or later; NotFoundError if none."""
    for snapshot in table.snapshots():
        # The least number stands for none.
        if snapshot.watermark is not None and snapshot.watermark >= max(watermark, _NO_WATERMARK + 1):
            return snapshot
    raise NotFoundError(f"table {table.identifier} has no snapshot with watermark {watermark} or a later one")


def _at(table: TableHandle, millis: int) -> int | None:
    return max(
        (snapshot.id for snapshot in table.snapshots() if snapshot.time_millis <= millis), default=None
    )


def text_millis(key: str, text: str, zone: str) -> int:
    """Return a time that option `key` says as text, in milliseconds since 1970; OptionError otherwise."""
    try:
        wall = parse_iso_datetime(text)
    except ValueError:
        raise OptionError(
            f"option {key!r} takes a time such as '2024-03-01 12:30:00', not {text!r}"
        ) from None
    aware = wall if wall.tzinfo else wall.replace(tzinfo=zoneinfo.ZoneInfo(zone))
    return int(aware.timestamp() * 1000)


# --- ranges --------------------------------------------------------------------------------------


def _between(table: TableHandle, key: str, text: str, mode: str, zone: str) -> Between | None:
    ends = [end.strip() for end in text.split(",")]
    if len(ends) != 2 or not all(ends):
        raise OptionError(f"option {key!r} takes two ends, such as '3,5', not {text!r}")
    mode = mode.strip().lower()
    if mode == "auto" and key == BETWEEN.key and not any(_NUMBER.fullmatch(end) for end in ends):
        mode = "diff"  # tags outlive the snapshots between them
    if key == BETWEEN.key:
        after, upto = (number_called(table, end) for end in ends)
    else:
        after, upto = _range_of_times(
            table, *(int(end) if _NUMBER.fullmatch(end) else text_millis(key, end, zone) for end in ends)
        )
    if after > upto:
        raise OptionError(f"option {key!r} goes forward: {text!r} ends before it begins")
    return Between(after, upto, mode == "delta", mode == "changelog", _states(mode))


def _states(mode: str) -> str:
    mode = mode.strip().lower()
    return mode.removeprefix("diff-") if mode.startswith("diff") else ""


def _to_tag(table: TableHandle, name: str, states: str) -> Between:
    """Return the range from the automatic tag before a tag up to it; empty if there is none before."""
    upto = _tagged(table, name).id
    periods = TagPeriods.of(table.schema.table_options)
    end = periods.start(name)
    if end is None:
        raise OptionError(
            f"option {AUTO_TAG.key!r} takes the name of an automatic tag, such as "
            f"{periods.name(datetime.datetime(2024, 3, 1))!r}, not {name!r}"
        )
    starts = ((periods.start(tag.name), tag.name) for tag in load_tags(table))
    earlier = [(start, other) for start, other in starts if start is not None and start < end]
    return Between(_tagged(table, max(earlier)[1]).id if earlier else upto, upto, states=states)


def _range_of_times(table: TableHandle, start: int, end: int) -> tuple[int, int]:
    if start > end:
        raise OptionError(f"option {BETWEEN_TIMES.key!r} goes forward, not from {start} to {end}")
    snapshots = table.snapshots()
    if not snapshots:
        return 0, 0
    after = _at(table, start)
    if after is None and snapshots[0].id > 1:
        raise SnapshotNotFoundError(
            f"table {table.identifier}: snapshots from after that time have expired; the oldest remaining "
            f"one is {snapshots[0].id}"
        )
    upto = _at(table, end)
    return after or 0, upto if upto is not None else after or 0


def _changelog(table: TableHandle, snapshot: Snapshot) -> Sequence[ManifestEntry]:
    check_generation(table.schema, table.schema_of(snapshot.schema_id), f"snapshot {snapshot.id}")
    source = change_source(table, snapshot)
    if source in (ChangeSource.DELTA, ChangeSource.STATES):
        what = (
            "is an OVERWRITE"
            if source is ChangeSource.STATES
            else "was committed without 'changelog-producer'"
        )
        raise UnsupportedError(
            f"snapshot {snapshot.id} of table {table.identifier} {what}, so it has no changelog; option "
            f"{SCAN_MODE.key!r} = 'delta' reads the rows that commits added"
        )
    return change_files(table, snapshot).added


def files_between(table: TableHandle, between: Between) -> FileTable:
    """Return the files that snapshots of a range added, from old to new.

    Snapshots that change no rows are passed over. Raises SnapshotNotFoundError if one of the range is not
    there, InputError for a range that goes backward, and UnsupportedError if one is an OVERWRITE, which also
    takes rows away, unless those are left out.
    """
    if between.after > between.upto:
        raise InputError(
            f"a range starts before it ends: after {between.after}, up to {between.upto} is empty"
        )
    if between.states == "diff":
        raise no_list_of_files(table)
    if between.states:
        wanted = {"of_first": between.states == "before", "whole": between.whole}
        return FileTable(differing_entries(table, between.after, between.upto, **wanted))
    entries: list[ManifestEntry] = []
    for number in range(between.after + 1, between.upto + 1):
        snapshot = table.snapshot(number)
        if between.of_changelogs:
            entries += _changelog(table, snapshot)
            continue
        if snapshot.commit_kind in (CommitKind.COMPACT, CommitKind.ANALYZE):
            continue
        check_generation(table.schema, table.schema_of(snapshot.schema_id), f"snapshot {number}")
        delta = table.manifests.delta_entries(snapshot)
        if snapshot.commit_kind is CommitKind.OVERWRITE or any(
            entry.kind is FileKind.DELETE for entry in delta
        ):
            if between.leave_out_overwrites:
                continue
            raise UnsupportedError(
                f"snapshot {number} of table {table.identifier} is an OVERWRITE, which removes rows, so "
                f"its added rows alone would mislead; option {SCAN_MODE.key!r} = 'delta' leaves it out"
            )
        entries += delta
    return FileTable(entries)

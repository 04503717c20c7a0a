"""Default selection: the snapshot that the table's own options select, else its newest one.

Source: Paimon's `CoreOptions.startupMode` and `TimeTravelUtil`, for batch reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lockgate.errors import OptionError
from lockgate.framework.store.metadata.snapshot import CommitKind
from lockgate.framework.store.pruning.file_options import CREATED, FILE_OPTIONS
from lockgate.framework.store.scan.snapshot_selection import (
    AUTO_TAG,
    BETWEEN,
    BETWEEN_TIMES,
    SCAN_MODE,
    SNAPSHOT_ID,
    TAG_NAME,
    TIMESTAMP,
    TIMESTAMP_MILLIS,
    VERSION,
    WATERMARK,
    Selection,
    selection_of,
)
from lockgate.framework.store.schema.unsupported_features import (
    check_no_branch,
    check_readable,
    check_unselected,
)

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle

_MODE = "scan.mode"
_STATES = frozenset({SNAPSHOT_ID.key, TAG_NAME.key, VERSION.key, WATERMARK.key})
_TIMES = frozenset({TIMESTAMP.key, TIMESTAMP_MILLIS.key})
_RANGES = frozenset({BETWEEN.key, BETWEEN_TIMES.key, AUTO_TAG.key})
_NEWEST: frozenset[str] = frozenset()
# By mode, the options of which one must be there; none: the newest snapshot is read.
_MODES: dict[str, frozenset[str]] = {
    **dict.fromkeys(("latest-full", "full", "latest", "compacted-full"), _NEWEST),
    **dict.fromkeys(("from-snapshot", "from-snapshot-full"), _STATES),
    "from-timestamp": _TIMES,
    "from-file-creation-time": frozenset({CREATED}),
    "incremental": _RANGES,
}

SELECTING = frozenset({_MODE, SCAN_MODE.key, *_STATES, *_TIMES, *_RANGES, *FILE_OPTIONS})
"""The options by which a table selects what is read of it."""


def table_selection(table: TableHandle, zone: str = "UTC") -> Selection:
    """Return what the table's own options select, for a query that names nothing itself.

    Raises UnsupportedError for options that select otherwise than by snapshots, OptionError for those that
    contradict each other, and what `selection_of` raises. `zone` is that of times written as text.
    """
    check_unselected(table.schema, honoured=SELECTING)
    given = {
        key: value
        for key, value in table.schema.options.items()
        if key in SELECTING and value.strip() and key != _MODE
    }
    named = {key: value for key, value in given.items() if key != SCAN_MODE.key and key not in FILE_OPTIONS}
    given = {key: value for key, value in given.items() if key not in FILE_OPTIONS}
    mode = table.schema.options.get(_MODE, "").strip().lower() or "default"
    if mode == "default":
        return selection_of(table, given, zone) if named else Selection()
    _check_mode(mode, named | {key: "" for key in (CREATED,) if table.schema.options.get(key, "").strip()})
    if mode == "compacted-full":
        return _compacted(table)
    return selection_of(table, given, zone) if named else Selection()


def selection_for(
    table: TableHandle, options: Mapping[str, str], zone: str, *, snapshot: int, travels: bool, writes: bool
) -> Selection:
    """Return what a query of an engine reads: what its options select, else what the table's own do, else
    `snapshot`, the newest when it was analysed, or with `travels` the one that it names.

    `writes`: what is written depends on the rows, which must be those of now.
    """
    check_readable(table.schema)
    selected = selection_of(table, options, zone)
    if travels or selected != Selection():
        check_no_branch(table.schema)
    if selected != Selection():
        if travels:
            raise OptionError(
                f"VERSION or TIMESTAMP AS OF and the options {', '.join(sorted(options))} contradict each "
                "other: give one of them"
            )
        return selected
    if travels:
        return Selection(snapshot)
    if writes:
        check_unselected(table.schema)
    own = table_selection(table, zone)
    return Selection(snapshot) if own == Selection() else own


def _check_mode(mode: str, named: Mapping[str, str]) -> None:
    wanted = _MODES[mode]
    if wanted and not wanted & named.keys():
        raise OptionError(f"option {_MODE!r} = {mode!r} of the table needs one of {_or(wanted)}")
    others = sorted(named.keys() - wanted)
    if others:
        raise OptionError(
            f"options {_MODE!r} = {mode!r} and {others[0]!r} of the table contradict each other"
        )


def _or(keys: frozenset[str]) -> str:
    return " or ".join(repr(key) for key in sorted(keys))


def _compacted(table: TableHandle) -> Selection:
    """Return the newest snapshot of a compaction; the newest of all if there was none."""
    for number in reversed(table.snapshot_files.ids()):
        if table.snapshot(number).commit_kind is CommitKind.COMPACT:
            return Selection(number)
    return Selection()

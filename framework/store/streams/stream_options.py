"""Options of a streaming read: where it starts, how much a batch takes, and who it is as a consumer.

The query's options win over the table's. Names are Paimon's; Spark's own are accepted, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lockgate.errors import OptionError, nearest
from lockgate.framework.options import Option, at_least, one_of, parse_bool, parse_some_size
from lockgate.framework.store.scan.snapshot_selection import SPLIT_OPTIONS
from lockgate.framework.store.schema.schema import TableSchema

_NO_NUMBER: int | None = None
_NO_SIZE: int | None = None
_NO_CHOICE: bool | None = None

SCAN_MODE = Option(
    "scan.mode",
    one_of(
        *("default", "latest-full", "full", "latest", "compacted-full"),
        *("from-snapshot", "from-snapshot-full", "from-timestamp"),
    ),
    "default",
    "start of a new query: `latest-full` (the newest state, then changes), `latest` (changes from now on), "
    "`compacted-full` (the newest compacted state, then changes), `from-snapshot`, `from-snapshot-full` "
    "(that state first), `from-timestamp`; `default`: as the options of snapshot and time say, else "
    "`latest-full`",
)
SNAPSHOT_ID = Option(
    "scan.snapshot-id", at_least(1), _NO_NUMBER, "the snapshot whose changes, or whose state, come first"
)
TIMESTAMP = Option(
    "scan.timestamp", str, "", "the time from which on commits are read, in the session's time zone"
)
TIMESTAMP_MILLIS = Option(
    "scan.timestamp-millis",
    at_least(0),
    _NO_NUMBER,
    "the time from which on commits are read, in milliseconds since 1970",
)
MAX_FILES = Option("read.stream.maxFilesPerTrigger", at_least(1), _NO_NUMBER, "most files of a batch")
MAX_BYTES = Option("read.stream.maxBytesPerTrigger", parse_some_size, _NO_SIZE, "most bytes of a batch")
MAX_ROWS = Option(
    "read.stream.maxRowsPerTrigger", at_least(1), _NO_NUMBER, "most rows of a batch, as its files count them"
)
MAX_COMMITS = Option(
    "read.stream.maxSnapshotsPerTrigger",
    at_least(1),
    _NO_NUMBER,
    "most snapshots of a batch; 1: the changes of each commit come in a batch of their own",
)
MIN_ROWS = Option(
    "read.stream.minRowsPerTrigger",
    at_least(1),
    _NO_NUMBER,
    "rows that a batch waits for; needs `read.stream.maxTriggerDelayMs`",
)
MAX_DELAY = Option(
    "read.stream.maxTriggerDelayMs",
    at_least(1),
    _NO_NUMBER,
    "milliseconds after the last batch from which a batch no longer waits for `minRowsPerTrigger`",
)
READ_CHANGELOG = Option(
    "read.changelog", parse_bool, False, "add the column `rowkind` (`+I`, `-U`, `+U`, `-D`) in front"
)
READ_OVERWRITE = Option(
    "streaming-read-overwrite",
    parse_bool,
    _NO_CHOICE,
    "`true`: rows of an OVERWRITE are read as new ones; `false`: they are left out; without it they are read "
    "with their kinds, and an error without kinds",
)
CONSUMER_ID = Option("consumer-id", str, "", "name of the query's consumer, by default the query's own id")
IGNORE_PROGRESS = Option(
    "consumer.ignore-progress",
    parse_bool,
    False,
    "start a new query as `scan.mode` says, even if its consumer has read before",
)

STREAM_OPTIONS: dict[str, Option[Any]] = {
    option.key: option
    for option in (
        SCAN_MODE,
        SNAPSHOT_ID,
        TIMESTAMP,
        TIMESTAMP_MILLIS,
        MAX_FILES,
        MAX_BYTES,
        MAX_ROWS,
        MAX_COMMITS,
        MIN_ROWS,
        MAX_DELAY,
        READ_CHANGELOG,
        READ_OVERWRITE,
        CONSUMER_ID,
        IGNORE_PROGRESS,
    )
}
"""All options of streaming reads, by key."""

# Names that users of Spark's other sources know.
_SPARKS = {"maxFilesPerTrigger": MAX_FILES.key, "maxBytesPerTrigger": MAX_BYTES.key}
# Of a table's own options, those that say how every query of it starts.
_OF_TABLES = frozenset(STREAM_OPTIONS) - {MAX_FILES.key, MAX_BYTES.key, READ_CHANGELOG.key}


@dataclass(frozen=True)
class Limits:
    """The most that one batch takes, and the least that it waits for; None: no limit."""

    files: int | None = None
    bytes: int | None = None
    rows: int | None = None
    commits: int | None = None
    least_rows: int | None = None
    delay_millis: int | None = None


class StreamOptions:
    """The options of one query of a table.

    Raises OptionError for options that are unknown, malformed, or in contradiction to each other, and for
    those that a stream cannot have.
    """

    def __init__(self, schema: TableSchema, given: Mapping[str, str]) -> None:
        own = _checked(given)
        inherited = {
            key: value for key, value in schema.options.items() if key in _OF_TABLES and value.strip()
        }
        if own.keys() & {SCAN_MODE.key, SNAPSHOT_ID.key, TIMESTAMP.key, TIMESTAMP_MILLIS.key}:
            for key in (SCAN_MODE.key, SNAPSHOT_ID.key, TIMESTAMP.key, TIMESTAMP_MILLIS.key):
                inherited.pop(key, None)
        self._given = {**inherited, **own}
        if (MIN_ROWS.key in self._given) != (MAX_DELAY.key in self._given):
            raise OptionError(
                f"options {MIN_ROWS.key!r} and {MAX_DELAY.key!r} need each other: give both or neither"
            )

    def __contains__(self, option: Option[Any]) -> bool:
        return option.key in self._given

    def get(self, option: Option[Any]) -> Any:
        """Return the value of an option, or its default."""
        text = self._given.get(option.key)
        return option.default if text is None else option.value_of(text)

    @property
    def limits(self) -> Limits:
        """Return the limits of one batch."""
        options = (MAX_FILES, MAX_BYTES, MAX_ROWS, MAX_COMMITS, MIN_ROWS, MAX_DELAY)
        return Limits(*map(self.get, options))

    @property
    def reads_overwrites(self) -> bool | None:
        """Say whether rows of an OVERWRITE are read or left out; None if nobody says."""
        found: bool | None = self.get(READ_OVERWRITE)
        return found


def _checked(given: Mapping[str, str]) -> dict[str, str]:
    proper = {key.lower(): key for key in (*STREAM_OPTIONS, *_SPARKS, *SPLIT_OPTIONS)}
    found: dict[str, str] = {}
    for key, text in given.items():
        name = proper.get(key.lower())
        if name is None:
            raise OptionError(
                f"a streaming read has no option {key!r}{nearest(key, sorted(proper.values()))}: it starts "
                f"where {SCAN_MODE.key!r} says, and ends with the query"
            )
        name = _SPARKS.get(name, name)
        if name in found:
            raise OptionError(f"option {key!r} is given twice, also as {name!r}: give one of them")
        if name in STREAM_OPTIONS:
            STREAM_OPTIONS[name].value_of(text)
        found[name] = text
    return found

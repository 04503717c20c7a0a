"""Messages on streams: where they start, what a batch reads, and how far a query has come."""

from __future__ import annotations

from typing import TypedDict

from lockgate.framework.spark.messages.scan_messages import PlanAnswer, ScanRequest, SelectiveRequest
from lockgate.framework.spark.messages.shared_messages import MicroBatch, TableRequest


class StreamRequest(SelectiveRequest):
    """A streaming read of a table; with `kinds` it shows the kind of each row.

    `source` is the number of the read in its query, as the checkpoint names it.
    """

    kinds: bool
    source: str
    properties: MicroBatch


class StreamEndRequest(StreamRequest):
    """The end of the batch that begins at `start`, as positions are written in checkpoints.

    `upto` is the last snapshot to read, null: the newest. `limited`: the options' limits hold.
    `waited_millis` is the time since the last batch, null if the batch waits for no rows.
    """

    start: str
    upto: int | None
    limited: bool
    waited_millis: int | None


class EndAnswer(TypedDict):
    """The end of a batch, and the newest snapshot of the table."""

    end: str
    newest: int


class BatchRequest(StreamRequest):
    """The batch between two positions."""

    start: str
    end: str


class BatchAnswer(TypedDict):
    """The files of a batch.

    `drops_retracts`: rows are left out whose kind says that something is gone. `left_out` counts such rows,
    `overwrites` commits that are left out.
    """

    plan: PlanAnswer
    drops_retracts: bool
    left_out: int
    overwrites: int


class ProgressRequest(StreamRequest):
    """The position up to which a query has committed all that it read."""

    end: str


class RangeEnd(TypedDict):
    """An end of a range of changes: a snapshot, a time in microseconds since 1970, or null for both."""

    version: str | None
    micros: int | None
    inclusive: bool


class RangeRequest(TableRequest):
    """A range of changes; `raw`: rows that stayed where others were replaced may be shown, too."""

    raw: bool
    start: RangeEnd
    end: RangeEnd


class RangeAnswer(TypedDict):
    """Snapshots with after < id <= upto; with `has_states` the rows before and after some of them tell."""

    after: int
    upto: int
    has_states: bool


class ChangesRequest(ScanRequest):
    """The files that tell the changes of a range that `changes.range` has fixed."""

    raw: bool
    after: int
    upto: int
    columns: list[str]

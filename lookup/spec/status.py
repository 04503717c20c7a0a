"""Status of a running lookup, for people and for tests."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lockgate.lookup.spec.lookup_spec import LookupSpec


@dataclass(frozen=True)
class Pin:
    """The snapshot that a micro-batch uses, or has used."""

    query_id: str
    batch_id: int
    snapshot_id: int


@dataclass(frozen=True)
class HostStatus:
    """The status of one host of a lookup: the driver's, or one whose executors share a folder of caches.

    `executors` are the ids of those that see the folder. The other fields mean what those of `LookupStatus`
    do, on this host alone.
    """

    host: str
    directory: str
    executors: tuple[str, ...]
    served_snapshot: int | None
    rows: int
    bytes: int
    build_seconds: float
    loading_rows: int | None
    expected_rows: int | None
    last_error: str | None
    failures: int
    owner_pid: int | None
    owner_restarts: int


@dataclass(frozen=True)
class BatchReport:
    """One batch as far as it has run.

    `rows` were asked for and `matched` of them have a match, `retried` of these only after a retry; `seconds`
    is the time that all workers together spent looking up. `lag_millis` is how long the newest snapshot had
    been waiting when the batch was planned, `failures` how many refreshes had failed in a row. Without a
    stream `query_id` and `batch_id` are None.
    """

    table: str
    query_id: str | None
    batch_id: int | None
    snapshot_id: int
    lag_millis: int
    cache_rows: int
    cache_bytes: int
    build_seconds: float
    rows: int = 0
    matched: int = 0
    retried: int = 0
    seconds: float = 0.0
    failures: int = 0

    @property
    def hit_rate(self) -> float:
        """The share of the rows that have a match; 0 of none."""
        return self.matched / self.rows if self.rows else 0.0

    def __str__(self) -> str:
        which = "a batch" if self.batch_id is None else f"batch {self.batch_id}"
        retried = f" ({self.retried} by a retry)" if self.retried else ""
        speed = f"{self.seconds:.3f} s in the workers"
        failed = f"; the last {self.failures} refreshes failed" if self.failures else ""
        return (
            f"{self.table}: {which} asked for {self.rows} rows, {self.hit_rate:.1%} matched{retried}, "
            f"snapshot {self.snapshot_id} ({self.lag_millis} ms behind), {speed}; "
            f"cache: {self.cache_rows} rows, {self.cache_bytes} bytes, built in {self.build_seconds:.3f} s"
            f"{failed}"
        )


@dataclass(frozen=True)
class LookupStatus:
    """The status of a lookup.

    `target_snapshot` is the newest snapshot that changed rows, `served_snapshot` the one that batches get
    now. `lag_millis` says how long a newer one than that has existed (0: there is none). `rows` and `bytes`
    count the cache. `build_seconds`, `built_millis` (since the epoch) and `full_load` (loaded whole?)
    describe the served state. During a load `loading_rows` counts up to about `expected_rows`. `last_error`
    is the error of the latest refresh, None after a success. `pins` are the micro-batches that still hold a
    snapshot, the newest last. `asked_rows` were looked up, as far as tasks have reported, and `hit_rows` of
    them found a match; `hit_rate` is None before the first. `hosts` has an entry for each host: the fields
    above are those of the first one, but errors are those of any host, and `bytes` and `owner_restarts` are
    sums. `last_batch` is the newest batch that looked up anything.
    """

    table: str
    keys: tuple[str, ...]
    directory: str
    target_snapshot: int | None
    served_snapshot: int | None
    lag_millis: int
    rows: int
    bytes: int
    build_seconds: float
    built_millis: int
    full_load: bool
    loading_rows: int | None
    last_error: str | None
    failures: int
    owner_pid: int | None
    owner_restarts: int
    pins: tuple[Pin, ...]
    expected_rows: int | None = None
    asked_rows: int = 0
    hit_rows: int = 0
    hosts: tuple[HostStatus, ...] = ()
    last_batch: BatchReport | None = None

    @property
    def hit_rate(self) -> float | None:
        """The part of the rows looked up that found a match, 0 to 1."""
        return self.hit_rows / self.asked_rows if self.asked_rows else None

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain values."""
        return {**asdict(self), "hit_rate": self.hit_rate}

    def __str__(self) -> str:
        parts = [f"{self.table} by {', '.join(self.keys)}: snapshot {self.served_snapshot}"]
        if self.target_snapshot is None:
            parts.append("the table has no snapshot" + (" any more" if self.served_snapshot else ""))
        elif self.target_snapshot != self.served_snapshot:
            parts.append(f"{self.lag_millis} ms behind {self.target_snapshot}")
        parts.append(f"{self.rows} rows, {self.bytes} bytes, built in {self.build_seconds:.3f} s")
        if self.hit_rate is not None:
            parts.append(f"{self.hit_rate:.1%} of {self.asked_rows} rows found")
        if len(self.hosts) > 1:
            parts.append(f"{len(self.hosts)} hosts")
        if self.last_error is not None:
            parts.append(f"refresh failed {self.failures}x: {self.last_error}")
        return ", ".join(parts)


def gauge_name(lookup: LookupStatus | LookupSpec) -> str:
    """Return the name of a lookup in Spark's metric system: its table and join columns."""
    table = lookup.table if isinstance(lookup, LookupStatus) else lookup.identifier
    return f"lookup.{table}.by.{'_'.join(lookup.keys)}"

"""The report of a scan: accepted and remaining filters, and the files that each step of pruning keeps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Count:
    """An amount of data: partitions, buckets, files, rows and bytes on disk."""

    partitions: int = 0
    buckets: int = 0
    files: int = 0
    rows: int = 0
    bytes: int = 0

    @classmethod
    def of(cls, files: Iterable[tuple[object, object, int, int]]) -> Count:
        """Count files given as (partition, bucket, rows, bytes)."""
        files_list = list(files)
        return cls(
            partitions=len({partition for partition, *_ in files_list}),
            buckets=len({(partition, bucket) for partition, bucket, *_ in files_list}),
            files=len(files_list),
            rows=sum(rows for _, _, rows, _ in files_list),
            bytes=sum(size for *_, size in files_list),
        )

    def to_dict(self) -> dict[str, int]:
        """Return the counts by name."""
        return {
            "partitions": self.partitions,
            "buckets": self.buckets,
            "files": self.files,
            "rows": self.rows,
            "bytes": self.bytes,
        }


@dataclass(frozen=True)
class Step:
    """One step of pruning: its name, the counts before and after it, and what it pruned by."""

    name: str
    before: Count
    after: Count
    by: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the step as plain values."""
        return {
            "name": self.name,
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "by": self.by,
        }


@dataclass(frozen=True)
class ScanReport:
    """Report of a scan: what it did with the query's filters, columns and aggregates.

    `accepted` are the filters that the source guarantees. `skipping` only skip data. `remaining` are left to
    the engine, each with the reason. `columns` is None if the scan reads all columns. `aggregates` are those
    that the engine requested, each with its outcome. `manifests` counts the snapshot's lists of files;
    `seconds` is the time of planning.
    """

    table: str
    snapshot_id: int | None
    steps: tuple[Step, ...] = ()
    accepted: tuple[str, ...] = ()
    skipping: tuple[str, ...] = ()
    remaining: tuple[tuple[str, str], ...] = ()
    columns: tuple[str, ...] | None = None
    all_columns: tuple[str, ...] = ()
    limit: int | None = None
    limit_note: str = ""
    order: str = ""
    aggregates: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = field(default=())
    manifests: int = 0
    seconds: float = field(default=0.0, compare=False)

    @property
    def total(self) -> Count:
        """Return the counts of the whole snapshot."""
        return self.steps[0].before if self.steps else Count()

    @property
    def kept(self) -> Count:
        """Return the counts of what the scan reads."""
        return self.steps[-1].after if self.steps else Count()

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values, fit for JSON."""
        return {
            "table": self.table,
            "snapshot_id": self.snapshot_id,
            "steps": [step.to_dict() for step in self.steps],
            "accepted": list(self.accepted),
            "skipping": list(self.skipping),
            "remaining": [{"filter": text, "reason": reason} for text, reason in self.remaining],
            "columns": None if self.columns is None else list(self.columns),
            "limit": self.limit,
            "limit_note": self.limit_note,
            "order": self.order,
            "aggregates": [{"aggregate": text, "answer": answer} for text, answer in self.aggregates],
            "notes": list(self.notes),
            "manifests": self.manifests,
            "seconds": self.seconds,
        }

    def render(self) -> str:
        """Return the report as text, with one fact on each line."""
        snapshot = "empty table" if self.snapshot_id is None else f"snapshot {self.snapshot_id}"
        lines = [f"Scan of {self.table}, {snapshot}"]
        lines += [_line(step) for step in self.steps]
        lines += [f"  accepted     {text}  (guaranteed)" for text in self.accepted]
        lines += [f"  accepted     {text}  (used to skip files)" for text in self.skipping]
        lines += [f"  remaining    {text}  because {reason}" for text, reason in self.remaining]
        if self.columns is not None:
            total = f" of {len(self.all_columns)}" if self.all_columns else ""
            lines.append(f"  columns      {len(self.columns)}{total}: {', '.join(self.columns) or '(none)'}")
        if self.order:
            lines.append(f"  order        {self.order}")
        if self.limit is not None:
            lines.append(f"  limit        {self.limit}{f'  ({self.limit_note})' if self.limit_note else ''}")
        lines += [f"  aggregate    {text}  {answer}" for text, answer in self.aggregates]
        lines += [f"  note         {note}" for note in self.notes]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render()


def _line(step: Step) -> str:
    before, after = step.before, step.after
    parts = [f"{after.files} of {before.files} files"]
    if after.partitions != before.partitions:
        parts.append(f"{after.partitions} of {before.partitions} partitions")
    if after.buckets != before.buckets:
        parts.append(f"{after.buckets} of {before.buckets} buckets")
    parts.append(f"{format_bytes(after.bytes)} of {format_bytes(before.bytes)}")
    return f"  {step.name:<12} {', '.join(parts)}{f'  by {step.by}' if step.by else ''}"


def format_bytes(size: int) -> str:
    """Return a size in bytes with a binary unit.

    >>> format_bytes(1536), format_bytes(10)
    ('1.5 KiB', '10 B')
    """
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"

"""What happened in one run of the demo, as plain values: filled by the steps, shown by the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from flights.wording import in_words


@dataclass(frozen=True)
class Batch:
    """One micro-batch of the stream through the lookup joins.

    `snapshots` maps each dimension to the snapshot that answered; `seconds` is the batch's whole time; `lag`
    is how many seconds after its commit that snapshot of `planes` could be served (0 where it was there
    before the stream); `newest` is the snapshot that `planes` had when the batch began.
    """

    number: int
    month: int
    rows: int
    seconds: float
    snapshots: Mapping[str, int]
    cache_bytes: int
    lag: float
    newest: int

    @property
    def rows_per_second(self) -> float:
        """Input rows over the batch's whole time."""
        return self.rows / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class PeerBatch:
    """One micro-batch of the same stream through Spark's own stream-static join."""

    number: int
    rows: int
    seconds: float


@dataclass(frozen=True)
class Step:
    """One step of a scan's pruning: how many of how many were kept."""

    name: str
    kept: int
    total: int


@dataclass(frozen=True)
class Funnel:
    """What push-down did to one query: `accepted` filters need no second look, `skipping` ones get one."""

    title: str
    sql: str
    steps: Sequence[Step]
    accepted: Sequence[str]
    skipping: Sequence[str]
    remaining: Sequence[str]
    columns: Sequence[str]
    rows: int
    seconds: float


@dataclass(frozen=True)
class Check:
    """One thing the demo verified about itself."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True)
class Call:
    """One `CALL`: its text, the counts it returned and how long it took."""

    sql: str
    result: Mapping[str, object]
    seconds: float


@dataclass(frozen=True)
class Missed:
    """Later flights of the changed planes, and how many of them show the change, by each join."""

    flights: int
    lookup: int
    spark: int


@dataclass(frozen=True)
class Rights:
    """Rows of one query for two users, a refusal to one of them, the answer after a grant, the audit."""

    sql: str
    columns: Sequence[str]
    ann: Sequence[Sequence[object]]
    bob: Sequence[Sequence[object]]
    refused_sql: str
    refusal: str
    granted: object
    audit: str


@dataclass(frozen=True)
class Big:
    """The comparison with a large dimension: seconds of each batch, and of the cache's first build."""

    dimension_rows: int
    batch_rows: int
    build_seconds: float
    lookup_seconds: Sequence[float]
    spark_seconds: Sequence[float]

    @property
    def speed_up(self) -> float:
        """How many times faster the median batch is through the lookup join."""
        return median(self.spark_seconds) / median(self.lookup_seconds)


@dataclass
class Story:
    """Everything a run has to tell."""

    flights: int = 0
    wall_seconds: float = 0.0
    batches: list[Batch] = field(default_factory=list)
    peer: list[PeerBatch] = field(default_factory=list)
    updated_before_month: int = 7
    update_seconds: float = 0.0
    missed: Missed | None = None
    funnels: list[Funnel] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    columns: Sequence[str] = ()
    with_key: list[Sequence[object]] = field(default_factory=list)
    without_key: list[Sequence[object]] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    big: Big | None = None
    rights: Rights | None = None
    # A page of its own: the lineage of the enriched flights.
    lineage: str = ""
    # When, where and with which versions it ran.
    about: list[tuple[str, str]] = field(default_factory=list)

    def check(self, name: str, ok: bool, detail: str) -> bool:
        """Note the outcome of a check and return it."""
        self.checks.append(Check(name, ok, detail))
        return ok

    def check_equal(self, name: str, actual: object, expected: object, found: str | None = None) -> bool:
        """Check that two values are equal; the detail is `found`, or both values when they are not."""
        same = actual == expected
        right = in_words(actual) if found is None else found
        return self.check(name, same, right if same else f"{actual!r}, expected {expected!r}")

    @property
    def ok(self) -> bool:
        """Whether there were checks and all of them held."""
        return bool(self.checks) and all(check.ok for check in self.checks)

    @property
    def rows_per_second(self) -> float:
        """The median of the batches after the first, which also builds the caches."""
        rates = [batch.rows_per_second for batch in self.batches[1:]]
        return median(rates) if rates else 0.0

    @property
    def peer_rows_per_second(self) -> float:
        """The same median for Spark's own join."""
        rates = [batch.rows / batch.seconds for batch in self.peer[1:] if batch.seconds]
        return median(rates) if rates else 0.0


def human_bytes(count: float) -> str:
    """Say a number of bytes with three digits and a unit."""
    for unit in ("B", "kB", "MB"):
        if abs(count) < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


def summary(story: Story) -> str:
    """The table that the demo prints at its end."""
    rows = [
        ("flights enriched", f"{story.flights:,}"),
        ("batches", str(len(story.batches))),
        ("rows/s through three lookup joins", f"{story.rows_per_second:,.0f}"),
        ("rows/s through Spark's own joins", f"{story.peer_rows_per_second:,.0f}"),
    ]
    if story.missed:
        rows.append(("later flights of changed planes", f"{story.missed.flights:,}"))
        rows.append(("  that show the change: lookup join", f"{story.missed.lookup:,}"))
        rows.append(("  that show the change: Spark's join", f"{story.missed.spark:,}"))
    if story.big:
        rows.append(("dimension rows (--big)", f"{story.big.dimension_rows:,}"))
        rows.append(("  median batch: lookup join", f"{median(story.big.lookup_seconds):.2f} s"))
        rows.append(("  median batch: Spark's join", f"{median(story.big.spark_seconds):.2f} s"))
    rows.append(("checks", f"{sum(check.ok for check in story.checks)} of {len(story.checks)} hold"))
    rows.append(("wall time", f"{story.wall_seconds:.0f} s"))
    width = max(len(name) for name, _ in rows)
    lines = [f"  {name:<{width}}  {value:>12}" for name, value in rows]
    lines += [f"  FAILED: {check.name}: {check.detail}" for check in story.checks if not check.ok]
    return "\n".join(lines)

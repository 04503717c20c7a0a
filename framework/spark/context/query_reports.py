"""Reports of a query's scans, collected while Spark plans the query."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lockgate.errors import InputError
from lockgate.framework.spark.context.driver_jvm import java_class
from lockgate.pushdown import FilterPushDown, ScanReport, describe

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REMEMBERED = 256
_KEPT = "Spark offers such a condition to no source and evaluates it on the rows"


@dataclass(frozen=True)
class OfferedFilters:
    """The filters that Spark offered to a scan: what became of them, and how Spark words them."""

    pushed: FilterPushDown
    texts: tuple[str, ...]

    def remaining(self) -> tuple[tuple[str, str], ...]:
        """Return the filters that Spark evaluates, each with the reason."""
        return tuple(
            (self.texts[item.index] if item.predicate is None else describe(item.predicate), item.reason)
            for item in self.pushed.remaining
        )


_NO_FILTERS = OfferedFilters(FilterPushDown((), ()), ())


class ScanReports:
    """The reports of the latest scans, by the id that the connector gives each scan."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._filters: OrderedDict[str, OfferedFilters] = OrderedDict()
        self._reports: OrderedDict[str, ScanReport] = OrderedDict()
        self._aggregates: OrderedDict[str, tuple[tuple[str, str], ...]] = OrderedDict()

    def remember_filters(self, scan_id: str, pushed: FilterPushDown, texts: Sequence[str]) -> None:
        """Remember what became of the filters of a scan, which Spark words as `texts`."""
        with self._lock:
            _remember(self._filters, scan_id, OfferedFilters(pushed, tuple(texts)))

    def filters(self, scan_id: str) -> OfferedFilters:
        """Return what became of the filters of a scan; Spark offers none to a scan without WHERE."""
        with self._lock:
            return self._filters.get(scan_id, _NO_FILTERS)

    def remember_aggregates(self, scan_id: str, aggregates: tuple[tuple[str, str], ...]) -> None:
        """Remember what became of the aggregates that Spark asked a scan for."""
        with self._lock:
            _remember(self._aggregates, scan_id, aggregates)

    def aggregates(self, scan_id: str) -> tuple[tuple[str, str], ...]:
        """Return what became of the aggregates that Spark asked a scan for; most scans are asked for none."""
        with self._lock:
            return self._aggregates.get(scan_id, ())

    def remember_report(self, scan_id: str, report: ScanReport) -> None:
        """Remember what a scan reads."""
        with self._lock:
            _remember(self._reports, scan_id, report)

    def report(self, scan_id: str) -> ScanReport | None:
        """Return the report of a scan, None if it is forgotten or was never planned."""
        with self._lock:
            return self._reports.get(scan_id)


def _remember(memory: OrderedDict[str, Any], scan_id: str, value: object) -> None:
    memory[scan_id] = value
    memory.move_to_end(scan_id)
    while len(memory) > _REMEMBERED:
        memory.popitem(last=False)


@dataclass(frozen=True)
class PushDownExplanation:
    """Explanation of what each scan of a query took over and left out; prints as text, one block a scan.

    `governed` counts relations of which policies hide rows or values: their scans would tell of them.
    """

    sql: str
    scans: tuple[ScanReport, ...]
    governed: int = 0

    def __str__(self) -> str:
        blocks = [report.render() for report in self.scans]
        if self.governed:
            blocks.append(f"Policies hide rows or values, and so the scans, of {self.governed} relation(s).")
        return "\n\n".join(blocks) or "No scan of a Lockgate table."

    def __iter__(self) -> Iterator[ScanReport]:
        return iter(self.scans)

    def __len__(self) -> int:
        return len(self.scans)

    def __getitem__(self, index: int) -> ScanReport:
        return self.scans[index]

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain values, fit for JSON."""
        return {
            "sql": self.sql,
            "scans": [report.to_dict() for report in self.scans],
            "governed": self.governed,
        }


def explain_pushdown(spark: SparkSession, reports: ScanReports, sql: str) -> PushDownExplanation:
    """Plan the query `sql` without running it and report each scan of a Lockgate table in it.

    Scans of tables of which policies hide something are counted only.
    Raises InputError for a statement that would take effect while it is analysed, such as CALL.
    """
    explainer = java_class(spark, "io.lockgate.spark.rules.sql.Explainer")
    from lockgate.framework.spark.context.sql_inspection import inspect_sql

    statement = inspect_sql(sql, spark=spark)
    if statement.kind == "CALL":
        raise InputError("a CALL cannot be explained: Spark runs it during analysis")
    planned = json.loads(explainer.scans(spark._jsparkSession, sql))
    found = ((reports.report(scan["id"]), scan["kept"]) for scan in planned["scans"])
    shown = tuple(_with_kept(report, kept) for report, kept in found if report is not None)
    return PushDownExplanation(sql, shown, planned["governed"])


def _with_kept(report: ScanReport, kept: Sequence[str]) -> ScanReport:
    """Add the filters that Spark has offered to no source."""
    more = tuple((text, _KEPT) for text in kept)
    return dataclasses.replace(report, remaining=(*report.remaining, *more))

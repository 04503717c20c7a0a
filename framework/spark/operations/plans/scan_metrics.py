"""The figures of a scan for Spark's UI: their names, and their values for a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.framework.plugins import STEPS, plugins
from lockgate.framework.spark.messages.table_messages import FigureName

if TYPE_CHECKING:
    from lockgate.framework.store import ScanPlan, TableHandle

_FIGURES = {
    "planning_ms": "milliseconds of planning",
    "manifests": "manifests of the snapshot",
    "files": "files to read",
    "bytes": "bytes of these files",
    "answered_from_metadata": "files answered for from metadata",
}


def skipped_by(step: str) -> str:
    """Return the name of the figure that counts the files that a step of pruning left out."""
    return f"skipped_by_{step}"


def scan_metrics(table: TableHandle) -> list[FigureName]:
    """Return name and description of each figure that scans of a table may have.

    Spark shows only figures that it knew before the scan was planned; a plugin's steps are among them.
    """
    steps = [*STEPS, *(pruner.name for _, pruner in plugins().pruners(table))]
    figures = {**_FIGURES, **{skipped_by(step): f"files skipped by {step}" for step in steps}}
    return [{"name": name, "description": text} for name, text in figures.items()]


def metrics_of(planned: ScanPlan, seconds: float) -> dict[str, int]:
    """Return the values for a plan, by name."""
    skipped: dict[str, int] = {}
    for step in planned.report.steps:
        name = skipped_by(step.name)
        skipped[name] = skipped.get(name, 0) + step.before.files - step.after.files
    return {
        "planning_ms": round(seconds * 1000),
        "manifests": planned.report.manifests,
        "files": sum(len(split.files) for split in planned.splits),
        "bytes": planned.total_bytes,
        **skipped,
    }

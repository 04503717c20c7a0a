"""Reasons of runs, with their literals masked."""

from __future__ import annotations

from lockgate.framework.access import mask_literals

_LONGEST = 500


def why_of(description: str | None, reason: str | None, *, keeps: bool) -> dict[str, str]:
    """Return the reasons of a run: of its Spark job, and of its session.

    Spark describes a job by the text of the statement, or where in a program it began; unless `keeps`, the
    literals in it are masked.
    """
    job = description or ""
    found = {"job": job if keeps else mask_literals(job[:_LONGEST]), "reason": reason or ""}
    return {key: value for key, value in found.items() if value}

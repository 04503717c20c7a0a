"""Reasons of runs, with their literals masked."""

from __future__ import annotations

from lockgate.framework.access import mask_literals

_LONGEST = 500


def why_of(description: str | None, reason: str | None, *, keep_literals: bool) -> dict[str, str]:
    """Return the reasons of a run: the description of its Spark job, and the reason of its session.

    Spark describes a job by the text of its statement or by its position in a program. Unless `keep_literals`
    is true, its literals are masked.
    """
    job = description or ""
    reasons = {"job": job if keep_literals else mask_literals(job[:_LONGEST]), "reason": reason or ""}
    return {key: value for key, value in reasons.items() if value}

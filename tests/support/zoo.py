"""The zoo: tables made by Paimon's own core, with what Paimon itself reads from them.

`tests/fixtures/zoo/lake.tar.gz` is the warehouse (database `zoo`), `expected.json.gz` says, by table, the
rows, files and indexes of each snapshot. Values are as in `exact_rows`.
"""

from __future__ import annotations

import gzip
import json
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

ZOO = Path(__file__).parents[1] / "fixtures" / "zoo"


@cache
def expected() -> dict[str, Any]:
    """Return what Paimon reads, by table."""
    with gzip.open(ZOO / "expected.json.gz") as file:
        found: dict[str, Any] = json.load(file)
        return found


def unpack(folder: Path) -> Path:
    """Unpack the warehouse into a folder and return it."""
    with tarfile.open(ZOO / "lake.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder


# What is refused, and by which words; every other table is read.
REFUSED = {
    "variant": "VARIANT",
    "data_evolution": "data-evolution.enabled",
    "fallback_branch": "scan.fallback-branch",
    **dict.fromkeys(("ignore_delete", "partial_ignore"), "ignore-delete"),
    "changelog_lookup_sum": "aggregation",
    **dict.fromkeys(
        (name for name in expected() if name.startswith(("aggregation", "ignore_retract_", "retract_"))),
        "aggregation",
    ),
    **dict.fromkeys(("first_row", "first_row_write_only"), "first-row"),
    **dict.fromkeys(
        ("partial", "partial_agg", "partial_groups", "partial_remove", "partial_remove_merged"),
        "partial-update",
    ),
}

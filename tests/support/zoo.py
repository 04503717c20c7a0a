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
    # Paimon itself cannot read these: their columns' functions cannot retract rows.
    **dict.fromkeys(
        (
            *("retract_bool_and", "retract_bool_or", "retract_first_non_null_value", "retract_first_value"),
            *("retract_listagg", "retract_max", "retract_min"),
        ),
        "cannot retract",
    ),
}

"""Tags by time: Paimon's core names the same snapshots the same way."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from paimon_java import PaimonJava, PaimonTable

from lockgate import procedures
from lockgate.framework.store import Catalog, Schema

pytestmark = pytest.mark.interop

COLUMNS = pa.schema([("id", pa.int64())])
OPTIONS: list[dict[str, str]] = [
    {},
    {
        "tag.creation-period": "hourly",
        "tag.period-formatter": "without_dashes",
        "tag.creation-delay": "20 min",
    },
    {"tag.creation-period": "two-hours", "tag.automatic-completion": "true", "tag.num-retained-max": "3"},
    {"tag.creation-period-duration": "50 min", "tag.num-retained-max": "2"},
]


def tags(catalog: Catalog, name: str) -> dict[str, int]:
    return {tag.name: tag.snapshot.id for tag in catalog.load_table(name).tags()}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("of", ["process-time", "watermark"])
def test_both_make_the_same_tags(
    catalog: Catalog, paimon_java: PaimonJava, of: str, options: dict[str, str]
) -> None:
    draw = random.Random(f"{of}{options}")
    given = {**options, "tag.automatic-creation": of}
    ours = catalog.create_table("db.ours", Schema.from_arrow(COLUMNS, options=given))
    now, theirs = 1_767_225_600_000 + draw.randrange(10**8), f"{Path(ours.location).parent}/theirs"
    for _ in range(2):
        for _ in range(8):
            number = ours.append(pa.table({"id": [1]}, schema=COLUMNS)).id
            now += draw.randrange(10 * 3_600_000)
            path = Path(ours.location) / "snapshot" / f"snapshot-{number}"
            member = "timeMillis" if of == "process-time" else "watermark"
            path.write_text(json.dumps(json.loads(path.read_text()) | {member: now}))
        # From the same state, tags of the first round included.
        shutil.rmtree(theirs, ignore_errors=True)
        shutil.copytree(ours.location, theirs)
        PaimonTable(paimon_java, catalog.warehouse, "db.theirs").refer("automatic_tags")
        procedures.call(
            procedures.ProcedureContext(catalog), "trigger_tag_automatic_creation", table="db.ours"
        )
        found = tags(catalog, "db.ours")
        assert found == tags(catalog, "db.theirs")
        assert found

"""Paimon in JVMs of other time zones: what instants mean depends on an option of the table.

Without `orc.timestamp-ltz.legacy.type` = `false`, Paimon stores the instant shifted by its JVM's zone, and
only a JVM of the same zone reads it right; nothing in the file tells.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from exact_rows import Rows, exact_rows, in_order
from paimon_java import PaimonJava, PaimonTable

from lockgate.framework.store import Catalog

pytestmark = pytest.mark.interop

SECOND = 10**9
EXACT = {"orc.timestamp-ltz.legacy.type": "false"}
COLUMNS = [
    ("id", "INT"),
    ("d", "DATE"),
    ("wall3", "TIMESTAMP(3)"),
    ("wall6", "TIMESTAMP(6)"),
    ("instant3", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
    ("instant6", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
]
# Hours when clocks of the northern summer change, and days before 1970.
TIMES = [0, 1_700_000_000, 1_710_037_800, 1_730_593_800, 1_730_597_400, -86_400 * 21_900, 4_102_444_800]
ROWS: Rows = [[at, time // 86_400, *[time * SECOND] * 4] for at, time in enumerate(TIMES)]
# Without summer time: where clocks jump, Paimon cannot store the wall clock's missing hour.
SHIFT = 19_800 * SECOND


@pytest.fixture(scope="module")
def in_kolkata(paimon_java: PaimonJava, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaimonJava]:
    """Paimon's core in a JVM half past five hours ahead; `paimon_java` is skipped where it cannot be had."""
    java = PaimonJava(tmp_path_factory.mktemp("paimon-kolkata"), zone="Asia/Kolkata")
    yield java
    java.close()


def test_times_are_exact_with_the_option(catalog: Catalog, in_kolkata: PaimonJava) -> None:
    theirs, copy = (PaimonTable(in_kolkata, catalog.warehouse, f"db.{name}") for name in ("t", "copy"))
    for table in (theirs, copy):
        table.create(COLUMNS, options=EXACT)
    theirs.write(ROWS)
    assert in_order(exact_rows(catalog.load_table("db.t").read())) == in_order(ROWS)
    catalog.load_table("db.copy").append(catalog.load_table("db.t").read())
    assert copy.read().rows == in_order(ROWS)
    for column in ("wall3", "wall6", "instant3", "instant6"):
        for table in (theirs, copy):
            assert table.read(where=["=", column, TIMES[2] * SECOND]).rows == [ROWS[2]]


def test_instants_are_of_the_writers_zone_without_it(
    catalog: Catalog, in_kolkata: PaimonJava, paimon_java: PaimonJava
) -> None:
    theirs = PaimonTable(in_kolkata, catalog.warehouse, "db.t")
    theirs.create(COLUMNS)
    theirs.write(ROWS)
    assert theirs.read().rows == in_order(ROWS)
    shifted: Rows = [[*row[:4], row[4] - SHIFT, row[5] - SHIFT] for row in ROWS]
    # Paimon itself, in UTC, takes the file as everybody else does.
    assert PaimonTable(paimon_java, catalog.warehouse, "db.t").read().rows == in_order(shifted)
    assert in_order(exact_rows(catalog.load_table("db.t").read())) == in_order(shifted)

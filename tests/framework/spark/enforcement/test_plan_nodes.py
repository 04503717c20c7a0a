"""Every node of a plan in the installed Spark is known: free, decided about, or refused by its name."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from lockgate.framework.spark.enforcement.plan_nodes import ACTIONS, BY_NAME, FREE, RELATIONS, SETTINGS

JARS = Path(pyspark.__file__).parent / "jars"
LOGICAL = "org/apache/spark/sql/catalyst/plans/logical/"
FOLDERS = (
    LOGICAL,
    "org/apache/spark/sql/catalyst/analysis/",
    "org/apache/spark/sql/catalyst/catalog/",
    "org/apache/spark/sql/catalyst/streaming/",
    "org/apache/spark/sql/execution/",
    "org/apache/spark/sql/pipelines/",
    "org/apache/spark/sql/hive/",
)
_ABSTRACT_OR_INTERFACE = 0x600
# The parts of a constant pool that are of no interest here, by their tags, with their sizes.
_SIZES = {**dict.fromkeys((3, 4, 9, 10, 11, 12, 17, 18), 4), **dict.fromkeys((5, 6), 8), 15: 3}


def header(data: bytes) -> tuple[str, int, list[str]]:
    """Return the name, the flags and the direct ancestors of a class file."""
    (count,), place, index = struct.unpack_from(">H", data, 8), 10, 1
    texts: dict[int, bytes] = {}
    links: dict[int, int] = {}
    while index < count:
        tag = data[place]
        if tag == 1:
            (size,) = struct.unpack_from(">H", data, place + 1)
            texts[index] = data[place + 3 : place + 3 + size]
            place += 3 + size
        elif tag in _SIZES:
            place += 1 + _SIZES[tag]
        else:
            (links[index],) = struct.unpack_from(">H", data, place + 1)
            place += 3
        index += 2 if tag in (5, 6) else 1
    flags, this, above, interfaces = struct.unpack_from(">HHHH", data, place)
    others = struct.unpack_from(f">{interfaces}H", data, place + 8)
    named = [texts[links[each]].decode() for each in (this, *([above] if above else []), *others)]
    return named[0], flags, named[1:]


def classes() -> Iterator[tuple[str, int, list[str]]]:
    for jar in sorted(JARS.glob("spark-*.jar")):
        if jar.name.split("_")[0] in ("spark-catalyst", "spark-sql", "spark-hive", "spark-pipelines"):
            with zipfile.ZipFile(jar) as opened:
                for name in opened.namelist():
                    if name.startswith(FOLDERS) and name.endswith(".class") and "$anon" not in name:
                        yield header(opened.read(name))


def plan_nodes() -> set[str]:
    """Return the simple names of all concrete classes of logical plans."""
    found = {name: (flags, above) for name, flags, above in classes()}
    plans = {f"{LOGICAL}LogicalPlan"}
    grown = 0
    while len(plans) > grown:
        grown = len(plans)
        plans |= {name for name, (_, above) in found.items() if plans & {*above}}
    concrete = {name for name in plans if not found[name][0] & _ABSTRACT_OR_INTERFACE}
    return {name.rsplit("/", 1)[1].replace("$", "") for name in concrete}


@pytest.mark.slow
def test_every_node_of_the_installed_spark_is_classified() -> None:
    found = plan_nodes()
    assert len(found) > 250
    assert found - FREE - RELATIONS - SETTINGS - ACTIONS.keys() - BY_NAME == set()


def test_a_node_has_one_class() -> None:
    groups = [FREE, RELATIONS, SETTINGS, frozenset(ACTIONS), BY_NAME]
    assert sum(map(len, groups)) == len(frozenset().union(*groups))

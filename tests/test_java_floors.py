"""The floors of the connector: each package imports only those below it, by an import or by a full name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CONNECTOR = Path(__file__).resolve().parent.parent / "framework/spark/java/io/lockgate/spark"

# What stands in the connector's own folder is above all packages: the classes that Spark finds by name.
FLOORS = (
    {"files.io", "messages", "rules.parser"},
    {"bridge"},
    {"enforcement.parts"},
    {"files.avro", "files.batches", "keys", "files.orc", "files.parquet"},
    {"files", "lookup.owner"},
    {"index", "integrity", "files.masks", "merge"},
    {"lookup", "read"},
    {"write"},
    {"scan"},
    {"catalog"},
    {"lineage", "rules.changes", "rules.pruning"},
    {"rules", "enforcement", "rules.streams"},
    {"enforcement.fences", "rules.joins", "rules.results", "rules.writes"},
    {"rules.sql"},
)
_USE = re.compile(r"\bio\.lockgate\.spark\.([a-z.]+)\.[A-Z]")


def uses(package: str) -> dict[str, list[str]]:
    """Return the packages that one uses, each with the files that do."""
    found: dict[str, list[str]] = {}
    paths = [path for path in sorted(CONNECTOR.rglob("*/*.java")) if package_of(path) == package]
    for path in paths:
        code = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        for other in {whole(name) for name in _USE.findall(code)} - {package}:
            found.setdefault(other, []).append(path.name)
    return found


def package_of(path: Path) -> str:
    return whole(".".join(path.parent.relative_to(CONNECTOR).parts))


def whole(package: str) -> str:
    """Return the package on a floor: `merge.folds` and `merge.functions` are parts of `merge`."""
    return "merge" if package.startswith("merge.") else package


def floor_of(package: str) -> int:
    return next(number for number, packages in enumerate(FLOORS) if package in packages)


def test_every_package_is_on_a_floor() -> None:
    packages = {package_of(path) for path in CONNECTOR.rglob("*/*.java")}
    assert packages == set().union(*FLOORS)


@pytest.mark.parametrize("package", sorted(set().union(*FLOORS)))
def test_a_package_uses_those_below_it(package: str) -> None:
    wrong = {other: files for other, files in uses(package).items() if floor_of(other) >= floor_of(package)}
    assert not wrong, f"{package} is on floor {floor_of(package)}"


def test_no_package_uses_the_classes_that_spark_finds_by_name() -> None:
    top = {path.stem for path in CONNECTOR.glob("*.java")}
    wrong = [
        f"{path.parent.name}/{path.name} uses {name}"
        for path in CONNECTOR.rglob("*/*.java")
        for name in re.findall(r"\bio\.lockgate\.spark\.([A-Z]\w+);", path.read_text())
        if name in top
    ]
    assert not wrong


# What these hold is known to the connector because it registers itself. Lineage does too, but rules ask it
# for the flow of columns.
REGISTERED = {"lookup", "lookup.owner"}
SERVICES = CONNECTOR.parents[2] / "META-INF/services/io.lockgate.spark.enforcement.parts.Part"


def test_parts_are_known_by_their_registration_alone() -> None:
    own = [path for path in CONNECTOR.rglob("*.java") if package_of(path) not in REGISTERED]
    named = {path.name: found for path in own if (found := REGISTERED & set(_USE.findall(path.read_text())))}
    assert len(own) > 100
    assert named == {}


def test_every_part_registers_itself() -> None:
    parts = {
        ".".join(path.relative_to(CONNECTOR.parents[2]).with_suffix("").parts)
        for path in CONNECTOR.rglob("*.java")
        if re.search(r"class \w+ implements (?:\w+, )*Part\b", path.read_text())
    }
    assert len(parts) >= 4
    assert set(SERVICES.read_text().split()) == parts

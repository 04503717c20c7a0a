"""A connector's jar is built again whenever its sources have changed, whatever the times of files say; each
class is there once for each Spark.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import link_check
import pytest

from lockgate.framework.spark.java import build_connector
from lockgate.framework.spark.java.build_connector import BuildError

ALL = list(build_connector.minors())


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the jar that `./dev` has built for the installed Spark, older than every source."""
    built = build_connector.build()
    copy = tmp_path / built.name
    shutil.copyfile(built, copy)
    os.utime(copy, (0, 0))
    monkeypatch.setattr(build_connector, "JARS", tmp_path)
    return copy


@pytest.fixture
def versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of sources of some versions of Spark, and none that all have."""
    monkeypatch.setattr(build_connector, "JAVA", tmp_path)
    monkeypatch.setattr(build_connector, "VERSIONS", tmp_path / "versions")
    return tmp_path / "versions"


def add(folder: Path, name: str, text: str = "") -> None:
    path = folder / "io" / "lockgate" / f"{name}.java"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_times_of_files_mean_nothing(jar: Path) -> None:
    assert build_connector.is_current(jar)
    os.utime(jar)
    assert build_connector.is_current(jar)


def test_another_spark(jar: Path) -> None:
    assert not build_connector.is_current(jar, "4.0.9")


def test_a_removed_source(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remaining = dict(list(build_connector.sources(ALL[-1]).items())[1:])
    monkeypatch.setattr(build_connector, "sources", lambda minor: remaining)
    assert not build_connector.is_current(jar)


def test_a_changed_source(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, *others = build_connector.sources(ALL[-1]).values()
    read = Path.read_bytes

    def changed(path: Path) -> bytes:
        return read(path) + b" " if path == first else read(path)

    monkeypatch.setattr(Path, "read_bytes", changed)
    assert not build_connector.is_current(jar)
    assert others


def test_a_jar_of_which_half_is_missing(jar: Path) -> None:
    jar.write_bytes(jar.read_bytes()[:1000])
    assert not build_connector.is_current(jar)


def test_the_jars_of_a_wheel_are_those_of_its_sources(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told without a Spark and a JDK, as where a wheel is made of a source archive."""
    monkeypatch.setattr(build_connector, "find_spark_jars", lambda: pytest.fail("no Spark is needed"))
    built = re.search(r"4\.\d+", jar.name)
    assert built is not None
    assert build_connector.missing_jars() == [minor for minor in ALL if minor != built[0]]
    assert build_connector.jar_faults() == []
    with zipfile.ZipFile(jar, "a") as archive:
        archive.comment = b"0" * 64
    shutil.copyfile(jar, jar.with_name("lockgate-spark-4.3_2.13-0.0.1.jar"))
    assert set(build_connector.jar_faults()) == {
        "lockgate-spark-4.3_2.13-0.0.1.jar is of another version",
        f"{jar.name} was made of other sources",
    }


def test_each_class_is_there_once_for_each_spark() -> None:
    names = {minor: set(build_connector.sources(minor)) for minor in ALL}
    assert build_connector.source_faults() == []
    assert "io/lockgate/spark/rules/changes/TableFeed.java" in names["4.2"] - names["4.1"]


def test_ranges_of_minors_include_both_ends(versions: Path) -> None:
    for each in ("4.0", "4.0-4.1", "4.2+"):
        add(versions / each, f"Of{each.translate(str.maketrans('.-+', '___'))}")
    found = {minor: [Path(name).stem for name in build_connector.sources(minor)] for minor in ALL}
    assert found["4.0"] == ["Of4_0", "Of4_0_4_1"]
    assert found["4.1"] == ["Of4_0_4_1"]
    assert found["4.2"] == found["4.3"] == ["Of4_2_"]


def test_a_class_that_is_twice_in_a_spark(versions: Path) -> None:
    add(versions / "4.0-4.1", "Reader")
    add(versions / "4.1+", "Reader")
    with pytest.raises(BuildError, match=r"for Spark 4\.1 there are two of io/lockgate/Reader\.java"):
        build_connector.source_faults()


def test_a_class_that_a_spark_lacks(versions: Path) -> None:
    add(versions / "4.1-4.2", "Reader")
    add(versions / "4.1+", "Uses", "Reader made;")
    assert build_connector.source_faults() == [
        "Reader is missing for Spark 4.3: io/lockgate/Uses.java names it"
    ]


@pytest.mark.parametrize("name", ["before-4.2", "3.5", "4.0-4.9", "4.2-4.1"])
def test_a_folder_whose_name_is_no_range(versions: Path, name: str) -> None:
    add(versions / name, "Reader")
    with pytest.raises(BuildError, match=re.escape(name)):
        build_connector.sources("4.1")


def test_no_class_asks_which_spark_runs() -> None:
    """What differs between minors is in their folders, where javac checks it."""
    asking = [
        path.stem for path in build_connector.JAVA.rglob("*.java") if "SPARK_VERSION" in path.read_text()
    ]
    assert asking == ["ConnectorVersion"], "it refuses a jar of another minor"


def test_a_jar_links_with_its_spark_and_not_with_others(tmp_path: Path) -> None:
    """By class files of this test, of which one Spark's lack what the connector's name."""
    if shutil.which("javac") is None:
        pytest.skip("needs a JDK")
    sources = {
        "Sink": "public interface Sink { void write(int row); }",
        "Rows": "public class Rows { public int count; public int next() { return 0; } }",
    }
    own = "public class Own implements Sink { Rows rows = new Rows(); int count() { return rows.count; } "
    own += "public void write(int row) { rows.next(); } Object maker() { return new Gone(); } }"
    whole = packed(tmp_path / "whole", {**sources, "Gone": "public class Gone {}"})
    jar = packed(tmp_path / "own", {"Own": own}, whole)
    assert link_check.faults(jar, [whole]) == []
    changed = {
        "Sink": "public interface Sink { void write(long row); }",
        "Rows": "public interface Rows { int next(); }",
    }
    assert link_check.faults(jar, [packed(tmp_path / "changed", changed)]) == [
        "Own: Rows has become an interface",
        "Own: Sink.write(J)V is not implemented",
        "Own: there is no Rows.count",
        "Own: there is no class Gone",
    ]


def packed(folder: Path, classes: dict[str, str], *class_path: Path) -> Path:
    """A jar of some classes, and nothing else."""
    folder.mkdir()
    for name, text in classes.items():
        (folder / f"{name}.java").write_text(text)
    files = [str(path) for path in folder.glob("*.java")]
    used = ["-cp", ":".join(map(str, class_path)) or "."]
    subprocess.run(["javac", "--release", "17", *used, "-d", str(folder), *files], check=True)
    jar = folder / "classes.jar"
    build_connector.pack(jar, {path.name: path.read_bytes() for path in folder.glob("*.class")})
    return jar

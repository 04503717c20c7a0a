"""The connector's jar is built again whenever its sources have changed, whatever the times of files say."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from lockgate.framework.spark.java import build_connector


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the jar that `./dev` has built, older than every source."""
    copy = tmp_path / "lockgate-spark.jar"
    shutil.copyfile(build_connector.JAR, copy)
    os.utime(copy, (0, 0))
    monkeypatch.setattr(build_connector, "JAR", copy)
    return copy


def test_times_of_files_mean_nothing(jar: Path) -> None:
    assert build_connector.is_current()
    os.utime(jar)
    assert build_connector.is_current()


def test_another_spark(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_connector, "_spark_version", lambda: "4.0.9")
    assert not build_connector.is_current()


def test_a_removed_source(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remaining = build_connector.sources()[1:]
    monkeypatch.setattr(build_connector, "sources", lambda: remaining)
    assert not build_connector.is_current()


def test_a_changed_source(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, *others = build_connector.sources()
    read = Path.read_bytes

    def changed(path: Path) -> bytes:
        return read(path) + b" " if path == first else read(path)

    monkeypatch.setattr(Path, "read_bytes", changed)
    assert not build_connector.is_current()
    assert others


def test_a_jar_of_which_half_is_missing(jar: Path) -> None:
    jar.write_bytes(jar.read_bytes()[:1000])
    assert not build_connector.is_current()

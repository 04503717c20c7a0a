"""Keys of tasks that do not arrive, lie, or are of writes that fail: no row is lost, no file is left."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from task_events import ALL, OPTIONS, check_segments, create, events

from lockgate.framework.spark.bridge import dispatcher
from lockgate.framework.spark.operations import write_operations
from lockgate.framework.store.write import sent_keys

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]


def with_commit(patch: pytest.MonkeyPatch, change: Callable[[Any, dict[str, Any]], None]) -> None:
    """Change the request of each commit before it is answered."""

    def changed(context: Any, request: dict[str, Any]) -> Any:
        change(context, request)
        return write_operations.commit(context, request)  # type: ignore[arg-type]  # as the connector sends it

    patch.setitem(dispatcher._OWN, "write.commit", changed)


def lie_about(what: str) -> Callable[[Any, dict[str, Any]], None]:
    def change(context: Any, request: dict[str, Any]) -> None:
        for message in request["messages"]:
            sent = message["index_keys"]
            raw = base64.b64decode(sent["inline"])
            message["index_keys"] = {
                "cut": {"inline": base64.b64encode(raw[:-9]).decode()},
                "flipped": {"inline": base64.b64encode(raw[:40] + bytes([raw[40] ^ 1]) + raw[41:]).decode()},
                "no base64": {"inline": "%%%"},
                "empty": {"inline": ""},
                "no file": {"inline": None},
                "nothing": None,
            }[what]

    return change


@pytest.mark.parametrize("what", ["cut", "flipped", "no base64", "empty", "no file", "nothing"])
def test_a_message_that_lies(
    lake: Lake,
    spark: SparkSession,
    table: Named,
    made: dict[str, bytes],
    read_again: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    what: str,
) -> None:
    name = table("lies")
    create(spark, name, ALL, OPTIONS)
    with_commit(monkeypatch, lie_about(what))
    with caplog.at_level(logging.WARNING):
        events(spark, 0, 400, 2).writeTo(name).append()
    assert spark.table(name).count() == 400
    check_segments(lake, name, made)
    assert len(read_again) == 2
    warnings = [each for each in caplog.messages if "the commit reads the indexed columns of data-" in each]
    assert len(warnings) == (0 if what == "nothing" else 2)


@pytest.mark.usefixtures("by_files")
@pytest.mark.parametrize("harm", ["lost", "large", "endless", "of another file"])
def test_a_file_of_keys_that_is_not_what_was_written(
    lake: Lake,
    spark: SparkSession,
    table: Named,
    made: dict[str, bytes],
    read_again: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    harm: str,
) -> None:
    name = table("harmed")
    create(spark, name, ALL, OPTIONS)
    monkeypatch.setattr(sent_keys, "_MOST_BYTES", 2**20)

    def damage(context: Any, request: Any) -> None:
        folder = Path(lake.catalog.load_table(name.removeprefix("lake.")).location, "index")
        first, second = sorted(folder.glob("keys-*"))
        if harm == "lost":
            first.unlink()
        elif harm == "endless":
            first.unlink()
            first.symlink_to("/dev/zero")
        elif harm == "large":
            first.write_bytes(first.read_bytes() + bytes(2**20))
        else:
            first.write_bytes(second.read_bytes())

    with_commit(monkeypatch, damage)
    events(spark, 0, 401, 2).writeTo(name).append()
    assert spark.table(name).count() == 401
    assert len(read_again) == 1
    check_segments(lake, name, made)


@pytest.mark.usefixtures("by_files")
def test_a_job_that_fails_leaves_no_file_of_keys(lake: Lake, spark: SparkSession, table: Named) -> None:
    """Of two tasks one ends, the other fails after some files."""
    name = table("failed")
    options = {"index.values.columns": "n,host", "target-file-size": "1 mb"}
    create(spark, name, "n INT, host STRING", options)
    folder = Path(lake.catalog.load_table(name.removeprefix("lake.")).location, "index")
    seen: list[list[str]] = []
    abort = dispatcher._OWN["write.abort"]

    def noted(context: Any, request: Any) -> Any:
        seen.append([path.name.split("-")[6] for path in folder.glob("keys-*")])
        return abort(context, request)

    rows = spark.range(0, 2, 1, 2).selectExpr("explode(sequence(0, IF(id = 0, 10, 200000))) AS n")
    failing = rows.selectExpr("n", "IF(n = 200000, raise_error('that will not do'), md5(string(n))) AS host")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(dispatcher._OWN, "write.abort", noted)
        with pytest.raises(Exception, match="that will not do"):
            failing.writeTo(name).append()
    assert seen == [["0"]]
    assert not list(folder.glob("keys-*"))
    assert not list(folder.parent.rglob("data-*"))
    rows.selectExpr("n", "md5(string(n)) AS host").writeTo(name).append()
    files = [path.name.split("-")[6] for path in folder.parent.rglob("data-*")]
    assert files.count("1") > 1, "the second task was to close a file before it fails"


@pytest.mark.usefixtures("by_files")
def test_a_commit_that_fails_leaves_no_file_of_keys(
    lake: Lake, spark: SparkSession, table: Named, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = table("refused")
    create(spark, name, "id BIGINT", {"index.values.columns": "id"})
    folder = Path(lake.catalog.load_table(name.removeprefix("lake.")).location, "index")
    seen: list[str] = []

    def fail(context: Any, request: Any) -> Any:
        seen.extend(path.name for path in folder.glob("keys-*"))
        raise OSError("the driver cannot")

    monkeypatch.setitem(dispatcher._OWN, "write.commit", fail)
    with pytest.raises(Exception, match="the driver cannot"):
        spark.range(100).writeTo(name).append()
    assert seen
    assert not list(folder.glob("keys-*"))

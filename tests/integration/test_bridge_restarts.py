"""The bridge when Python ends, comes back, or is somebody else."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException

import lockgate
from lockgate.framework.lineage.lake_methods import wait_for_records
from lockgate.framework.spark.bridge import gateway
from lockgate.framework.spark.bridge.bridge_server import BridgeServer
from lockgate.framework.version import BRIDGE_PROTOCOL, VERSION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

    Named = Callable[[str], str]


def jvm(spark: SparkSession) -> Any:
    return spark._jvm


def ask(spark: SparkSession, name: str, **request: object) -> Any:
    """Ask as the connector does, from the JVM's thread of this Python thread."""
    bridge = jvm(spark).io.lockgate.spark.bridge.Bridge
    return json.loads(str(bridge.ask(name, bridge.JSON.readTree(json.dumps(request))).toString()))


@pytest.fixture
def own_server(spark: SparkSession) -> Iterator[BridgeServer]:
    """A server that a test may end; the session has its own again afterwards."""
    usual = gateway._server
    gateway._server = None
    lockgate.attach(spark)
    assert gateway._server is not None
    yield gateway._server
    gateway._server.close()
    gateway._server = usual
    lockgate.attach(spark)


def test_a_python_side_that_ended_is_a_plain_error(
    lake: Lake, table: Named, own_server: BridgeServer
) -> None:
    spark = lake.spark
    spark.sql(f"CREATE TABLE {table('t')} (id INT)")
    own_server.close()
    for _ in range(10):  # kept connections, and new ones
        with pytest.raises(AnalysisException, match=r"Python side did not answer 'table\.load'"):
            spark.sql(f"SELECT * FROM {table('t')}")
    gateway._server = None
    lockgate.attach(spark)
    assert spark.sql(f"SELECT * FROM {table('t')}").collect() == []


def test_what_lineage_records_waits_for_python(lake: Lake, own_server: BridgeServer, tmp_path: Path) -> None:
    def told() -> dict[str, int]:
        wait_for_records(lake.spark)
        status = lake.lineage_status()
        return {each: status[each] for each in ("waiting", "elsewhere", "failed", "dropped")}

    before = told()
    own_server.close()
    for number in range(3):
        lake.spark.range(number).write.json(str(tmp_path / f"out{number}"))
    assert told() == {**before, "waiting": before["waiting"] + 3}
    gateway._server = None
    lockgate.attach(lake.spark)
    assert told() == {**before, "elsewhere": before["elsewhere"] + 3}


def test_an_impostor_is_not_asked(spark: SparkSession, tmp_path: Path) -> None:
    """A folder that is not this user's alone, and a socket that answers nonsense."""
    bridge = jvm(spark).io.lockgate.spark.bridge.Bridge
    version, protocol = VERSION, BRIDGE_PROTOCOL
    with pytest.raises(Py4JJavaError, match="IOException"):
        bridge.register(str(tmp_path / "missing"), "x" * 64, version, protocol, False)
    folder = Path(f"/tmp/lockgate-test-{os.getpid()}")
    folder.mkdir(mode=0o755)
    try:
        with pytest.raises(Py4JJavaError, match="open to other users"):
            bridge.register(str(folder), "x" * 64, version, protocol, False)
        folder.chmod(0o700)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
            listening.bind(str(folder / "socket"))
            listening.listen(1)

            def answer() -> None:
                connection, _ = listening.accept()
                with connection:
                    connection.recv(1000)
                    connection.sendall(b"\0\0\0\0\x05/etc/")

            thread = threading.Thread(target=answer)
            thread.start()
            with pytest.raises(Py4JJavaError, match="not Lockgate's Python side"):
                bridge.register(str(folder), "x" * 64, version, protocol, False)
            thread.join()
    finally:
        (folder / "socket").unlink(missing_ok=True)
        folder.rmdir()
    assert ask(spark, "bridge.hello")["protocol"] == protocol, "the one before is still in place"

"""Another user of the driver's host gets no answer, no key, no row, and nothing done."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import psutil
import pytest
from spark_version import SPARK
from stranger import NOBODY, as_stranger, needs_root, open_to_all

from lockgate import lookup

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]
T = TypeVar("T")

pytestmark = needs_root

# Where Lockgate and Python are installed, which may be open to anybody: the sources, and the environment.
PROGRAMS = (Path(__file__).parents[2], Path(sys.prefix), Path(sys.base_prefix))
# What py4j's callback server answers without asking who asks.
COMMANDS = """
import json, socket, sys
found = []
for port in map(int, sys.argv[1:]):
    for command in (
        'c\\np0\\ncall\\nskeys.names\\ns{"scope": "keys-1"}\\ne\\n',
        'c\\np0\\ncall\\ntable.list\\ns{"catalog": "lake", "namespace": ["default"]}\\ne\\n',
        'c\\np0\\ntoString\\ne\\n',
        '{"operation": "table.list", "catalog": "lake"}\\n',
    ):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as client:
                client.sendall(command.encode())
                answer = client.recv(65536).decode(errors="replace")
        except OSError:
            continue
        if answer.startswith("!y"):
            found.append([port, command, answer])
print(json.dumps(found))
"""

PLACES = """
import json, os, socket, stat, sys
found = []
for path in sys.argv[1:]:
    mode = os.stat(path).st_mode if os.path.exists(path) else 0
    try:
        if stat.S_ISSOCK(mode):
            socket.socket(socket.AF_UNIX).connect(path)
        else:
            os.listdir(path) if stat.S_ISDIR(mode) else open(path, "rb").read()
        found.append(path)
    except OSError:
        pass
print(json.dumps(found))
"""


@pytest.fixture
def secrets(spark: SparkSession, table: Named) -> Iterator[str]:
    """A table with an encrypted column, read once, so that everything that serves it runs."""
    name = table("people")
    spark.sql(f"CREATE TABLE {name} (id INT, ssn STRING) TBLPROPERTIES ('orc.encrypt' = 'pii:ssn')")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'top secret')")
    assert spark.table(name).count() == 1
    return name


def processes() -> list[psutil.Process]:
    here = psutil.Process()
    return [here, *here.children(recursive=True)]


def of_processes(ask: Callable[[psutil.Process], Iterable[T]]) -> list[T]:
    """What `ask` says of this process and its children, but for those that are ending."""
    found: list[T] = []
    for process in processes():
        with suppress(psutil.Error):
            found += ask(process)
    return found


def listening() -> list[int]:
    connections = of_processes(lambda process: process.net_connections(kind="tcp"))
    return sorted({each.laddr.port for each in connections if each.status == psutil.CONN_LISTEN})


def test_no_port_takes_a_command(secrets: str) -> None:
    ports = listening()
    assert ports, "Spark listens somewhere"
    assert as_stranger(COMMANDS, *map(str, ports)) == []


def own_places() -> list[str]:
    """Sockets by name and open files of this process and its children that are Lockgate's, programs aside.

    Standard streams belong to the process that started the tests.
    """
    sockets = of_processes(lambda process: process.net_connections(kind="unix"))
    files = of_processes(lambda process: process.open_files())
    paths = {each.laddr for each in sockets if each.laddr} | {file.path for file in files if file.fd > 2}
    return sorted(
        path
        for path in paths
        if path.startswith("/")
        and "lockgate" in path
        and not path.endswith((".jar", ".so", ".py"))
        and not any(Path(path).is_relative_to(each) for each in PROGRAMS)
    )


def test_own_places_are_found_and_programs_are_not(tmp_path: Path) -> None:
    with (tmp_path / "lockgate-state").open("w"), Path(sys.prefix, "lockgate-program").open("w"):
        places = own_places()
    Path(sys.prefix, "lockgate-program").unlink()
    assert str(tmp_path / "lockgate-state") in places
    assert not [path for path in places if path.startswith(sys.prefix)]


@pytest.mark.skipif(SPARK < (4, 1), reason="a lookup of an encrypted table needs PySpark 4.1")
@pytest.mark.usefixtures("lookups_end")
def test_sockets_and_caches_are_closed_to_others(
    spark: SparkSession, table: Named, tmp_path: Path, secrets: str, options: dict[str, str]
) -> None:
    cache = open_to_all(tmp_path / "lockgate-caches") / "cache"
    rows = spark.range(3).selectExpr("CAST(id AS INT) AS id")
    given = {**options, "lookup.cache-dir": str(cache)}
    assert lookup.lookup_join(rows, secrets, on="id", options=given).count() == 3
    paths = [path for path in cache.rglob("*") if path.exists()]
    assert paths, "the cache lies where it was wished"
    everything = [*map(str, paths), str(cache), *own_places()]
    assert as_stranger(PLACES, *everything) == []


FOLDER = """
import json, os, sys
path = sys.argv[1]
os.makedirs(path + "/generations/1", mode=0o777)
os.chmod(path, 0o777)
print(json.dumps(os.stat(path).st_uid))
"""


LINK = """
import json, os, sys
os.symlink(sys.argv[2], sys.argv[1])
print(json.dumps(os.lstat(sys.argv[1]).st_uid))
"""


@pytest.mark.usefixtures("lookups_end")
@pytest.mark.parametrize("trap", ["folder", "link"])
def test_a_cache_folder_of_another_user_is_refused(
    spark: SparkSession, tmp_path: Path, secrets: str, options: dict[str, str], trap: str
) -> None:
    place = open_to_all(tmp_path / "everybodys") / "cache"
    if trap == "folder":
        assert as_stranger(FOLDER, str(place)) == NOBODY
    else:
        own = tmp_path / "own"
        own.mkdir(mode=0o700)
        assert as_stranger(LINK, str(place), str(own)) == NOBODY
    rows = spark.range(3).selectExpr("CAST(id AS INT) AS id")
    given = {**options, "lookup.cache-dir": str(place), "lookup.timeout": "10 s"}
    with pytest.raises(Exception, match=r"(?s)belongs to|of another user|owner|link"):
        lookup.lookup_join(rows, secrets, on="id", options=given).collect()


def test_files_of_the_warehouse_s_keys_are_private(key_file: Path) -> None:
    assert key_file.stat().st_mode & 0o077 == 0
    assert as_stranger(PLACES, str(key_file)) == []


def test_an_environment_tells_no_key(lake: Lake, key_file: Path) -> None:
    """Command lines are for everybody to read; an environment for the same user."""
    import json

    document = json.loads(key_file.read_text())
    material = [text for text in _texts(document) if len(text) >= 20]
    assert material
    words = of_processes(lambda process: process.cmdline())
    assert not any(text in word for text in material for word in [*words, *os.environ.values()])


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)

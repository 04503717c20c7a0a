"""Paimon's own Java core as referee: a JVM that reads, writes, compacts and expires tables when it is asked.

The jar is Paimon's bundle from Maven Central; Hadoop's classes come with pyspark. Rows: see `exact_rows`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exact_rows import Rows, in_order

VERSION = "1.4.2"
SHA256 = "85a1587409e6c044b46eb20370a46ecd288576b8bc7aadf6b0432a4f2370f5d1"
SOURCES = Path(__file__).parents[1] / "interop" / "java"


class PaimonError(AssertionError):
    """Paimon refused or failed; the text is its own."""


def fetch_bundle(folder: Path) -> Path:
    """Return Paimon's bundle, by Maven and its cache; AssertionError if it is not the known one."""
    command = ["mvn", "-q", "-B", "dependency:copy", f"-DoutputDirectory={folder}"]
    artifact = f"-Dartifact=org.apache.paimon:paimon-bundle:{VERSION}"
    done = subprocess.run([*command, artifact], cwd=folder, capture_output=True, text=True, timeout=500)
    if done.returncode:
        raise OSError(f"Maven could not fetch Paimon's bundle: {done.stdout[-300:]}")
    jar = folder / f"paimon-bundle-{VERSION}.jar"
    with jar.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != SHA256:
        raise AssertionError(f"{jar.name} has the SHA-256 {found}, not {SHA256}")
    return jar


def class_path(bundle: Path) -> str:
    """The bundle and what it needs of pyspark's jars."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    jars = Path(spec.origin).parent / "jars"
    needed = ("hadoop-client-*", "slf4j-api-*", "jackson-*")
    return ":".join([str(bundle), *(str(jar) for name in needed for jar in sorted(jars.glob(f"{name}.jar")))])


class PaimonJava:
    """One JVM with Paimon's core, asked by lines of JSON."""

    def __init__(self, folder: Path, zone: str = "UTC") -> None:
        """Fetch, compile and start in a time zone; needs mvn, java and javac."""
        path = class_path(fetch_bundle(folder))
        classes = folder / "classes"
        sources = [str(source) for source in sorted(SOURCES.glob("*.java"))]
        subprocess.run(["javac", "-d", str(classes), "-cp", path, *sources], check=True, timeout=120)
        self._log = (folder / "log").open("w+b")
        command = ["java", "-Xmx512m", f"-Duser.timezone={zone}", "-cp", f"{classes}:{path}", "Referee"]
        self._process = subprocess.Popen(
            [*command, str(folder / "scratch")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self._one_at_a_time = threading.Lock()

    def ask(self, warehouse: str, table: str, op: str, **arguments: Any) -> Any:
        """Ask one thing about one table; PaimonError says what Paimon said."""
        line = json.dumps({"warehouse": warehouse, "table": table, "op": op, **arguments})
        with self._one_at_a_time:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        if not answer:
            self._log.seek(0)
            raise AssertionError(f"Paimon's JVM ended: {self._log.read()[-2000:].decode()}")
        parsed = json.loads(answer)
        if "error" in parsed:
            raise PaimonError(parsed["error"])
        return parsed["ok"]

    def close(self) -> None:
        """End the JVM."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()
        self._log.close()


def number_fields(fields: Sequence[Mapping[str, Any]], ids: Iterator[int]) -> list[dict[str, Any]]:
    """Give every field an id, also inside structs."""
    numbered = [{"id": next(ids), **field} for field in fields]
    return [{**field, "type": _number_type(field["type"], ids)} for field in numbered]


def _number_type(kind: Any, ids: Iterator[int]) -> Any:
    if not isinstance(kind, Mapping):
        return kind
    inner = {name: _number_type(kind[name], ids) for name in ("element", "key", "value") if name in kind}
    if "fields" in kind:
        inner["fields"] = number_fields(kind["fields"], ids)
    return {**kind, **inner}


def structure(*fields: tuple[str, Any]) -> dict[str, Any]:
    """A struct's type; its fields are numbered when the table is created."""
    return {"type": "ROW", "fields": [{"name": name, "type": kind} for name, kind in fields]}


def missing_tool() -> str | None:
    """The name of a program that is needed and not there."""
    return next((name for name in ("mvn", "java", "javac") if shutil.which(name) is None), None)


@dataclass(frozen=True)
class Read:
    """What Paimon read: rows in an order of their own, and how many files it opened for them."""

    columns: list[str]
    rows: Rows
    files: int


@dataclass(frozen=True)
class PaimonTable:
    """One table (`db.t`, `db.t$branch_b`, `db.t$snapshots`) as Paimon sees it."""

    java: PaimonJava
    warehouse: str
    name: str

    def create(
        self,
        columns: Sequence[tuple[str, Any] | Mapping[str, Any]],
        *,
        primary_keys: Sequence[str] = (),
        partition_keys: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> None:
        """Create it; a column is (name, type in Paimon's JSON) or an object with more, ids left out."""
        given = [dict(c) if isinstance(c, Mapping) else {"name": c[0], "type": c[1]} for c in columns]
        schema = {
            "fields": number_fields(given, itertools.count()),
            "primaryKeys": list(primary_keys),
            "partitionKeys": list(partition_keys),
            "options": {"file.format": "orc", **(options or {})},
            "comment": comment,
        }
        self._ask("create", schema=schema)

    def alter(self, *changes: Mapping[str, Any]) -> None:
        """Change its schema."""
        self._ask("alter", changes=changes)

    def write(
        self,
        rows: Rows,
        *,
        kind: str | None = None,
        overwrite: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> int:
        """Write rows and return the snapshot's number; `kind` is `-D` to delete."""
        asked: dict[str, Any] = {"rows": rows, "options": dict(options or {})}
        if kind is not None:
            asked["kind"] = kind
        if overwrite is not None:
            asked["overwrite"] = dict(overwrite)
        return int(self._ask("write", **asked))

    def read(
        self,
        columns: Sequence[str] | None = None,
        *,
        where: Sequence[Any] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> Read:
        """Read rows; `where` is like ["<", "column", value]."""
        asked: dict[str, Any] = {"options": dict(options or {})}
        if columns is not None:
            asked["columns"] = list(columns)
        if where is not None:
            asked["filter"] = list(where)
        found = self._ask("read", **asked)
        return Read(found["columns"], in_order(found["rows"]), found["files"])

    def schema(self) -> dict[str, Any]:
        """Its newest schema as Paimon writes it."""
        return dict(self._ask("schema"))

    def files(self) -> list[dict[str, Any]]:
        """Its data files: name, bucket, level, rows, schema, deleted, sequence."""
        return list(self._ask("files"))

    def buckets(self, rows: Rows) -> list[int]:
        """The bucket that each row belongs to."""
        return list(self._ask("buckets", rows=rows))

    def of_branch(self, branch: str) -> PaimonTable:
        """A branch of it."""
        return PaimonTable(self.java, self.warehouse, f"{self.name}$branch_{branch}")

    def compact(self, options: Mapping[str, str] | None = None) -> None:
        """Compact it fully."""
        self._ask("compact", options=dict(options or {}))

    def index(self) -> None:
        """Give every data file an index, as its options say."""
        self._ask("index")

    def expire(self, retain: int) -> int:
        """Expire all but the newest snapshots; return how many went."""
        return int(self._ask("expire", retain=retain))

    def follow(self, start: int, options: Mapping[str, str] | None = None) -> Rows:
        """What a stream reads from a snapshot on, expired or not; each row begins with its kind."""
        return list(self._ask("follow", **{"from": start}, options=dict(options or {})))

    def expire_changelogs(self, retain: int) -> int:
        """Expire the changes of all but the newest commits; return how many went."""
        return int(self._ask("expire_changelogs", retain=retain))

    def orphans(self, older_than: int) -> int:
        """Remove files older than a time in milliseconds that nothing refers to; return how many went."""
        return int(self._ask("orphans", older_than=older_than))

    def refer(self, what: str, **arguments: Any) -> None:
        """Create, rename or delete tags and branches, fast forward, roll back."""
        self._ask("refer", what=what, **arguments)

    def _ask(self, op: str, **arguments: Any) -> Any:
        return self.java.ask(self.warehouse, self.name, op, **arguments)

"""A warehouse under policies that tests change, and sessions of its users."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranger_world import allow, deny, mask, row_filter, service

from lockgate.framework.governance import PolicyFiles, RangerAuthorizer, Record
from lockgate.framework.plugins import plugins
from lockgate.governance import service_definition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

ACTS = "spark.lockgate.acts-for-others"
ROWS = """(1, 'ann', '111-11-1111', 'x', 100), (2, 'bob', '222-22-2222', 'y', 200),
          (3, 'cal', '333-33-3333', 'x', 300), (4, 'dan', '444-44-4444', 'y', 5)"""


class World:
    """A warehouse under policies that tests change, and sessions of its users."""

    def __init__(self, lake: Lake, path: Path) -> None:
        self._lake, self._path, self._version = lake, path, 0
        self._sessions: dict[str, SparkSession] = {}
        self.records: list[Record] = []
        self.put()
        self.authorizer = RangerAuthorizer(
            PolicyFiles(path, seconds=0),
            catalog="lake",
            apply_at="the data office",
            audit=self.records.append,
        )

    def put(self, *policies: dict[str, Any], **more: Any) -> None:
        """Put policies in place of those before, `more` as in `service`."""
        self._policies = policies
        everything = allow("*.*.*.*", "all", users=["root"])
        root = allow("*.*.*", "all", users=["root"])
        self._write(service(everything, root, *policies, **more))

    def put_paths(self, user: str, *paths: str, accesses: Iterable[str] = ("read",)) -> None:
        """Let a user read paths and nothing else, by the product's own definition."""
        items = [{"accesses": [{"type": each} for each in accesses], "users": [user]}]
        named = {"path": {"values": list(paths), "isRecursive": True}}
        said = service({"id": 1, "name": "paths", "resources": named, "policyItems": items})
        self._write({**said, "serviceDef": service_definition()})

    def _write(self, said: dict[str, Any]) -> None:
        self._version += 1
        said["policyVersion"] = self._version
        written = self._path.with_suffix(".new")
        written.write_text(json.dumps(said))
        os.utime(written, ns=(self._version * 10**9, self._version * 10**9))
        written.replace(self._path)  # at once: streams read them at any time

    @property
    def policies(self) -> tuple[dict[str, Any], ...]:
        """The policies of the last `put`, without those of root."""
        return self._policies

    def grant_calls(self, user: str) -> None:
        """Let a user call procedures too, which takes `alter` on the catalog."""
        self.put(*self._policies, allow("lake", "alter", users=[user]))

    def session(self, user: str) -> SparkSession:
        if user not in self._sessions:
            session = self._lake.spark.newSession()
            session.conf.set("spark.lockgate.user", user)
            self._sessions[user] = session
        return self._sessions[user]

    def sql(self, text: str, user: str = "ann") -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in self.session(user).sql(text).collect())


SEEN = [(1, "xxx-xx-1111"), (3, "xxx-xx-3333")]


def make_people(lake: Lake, name: str) -> str:
    lake.sql(f"CREATE TABLE {name} (id BIGINT, name STRING, ssn STRING, dept STRING, salary BIGINT)")
    lake.sql(f"INSERT INTO {name} VALUES {ROWS}")
    return name


@contextmanager
def governed(lake: Lake, path: Path) -> Iterator[World]:
    conf: Any = lake.spark.sparkContext._jsc.sc().conf()
    conf.set(ACTS, "true")
    found = World(lake, path)
    plugins().register(found.authorizer, "governance-of-a-test")
    try:
        yield found
    finally:
        plugins().unregister("governance-of-a-test")
        conf.remove(ACTS)
        _activate(lake.spark)


def _activate(spark: SparkSession) -> None:
    """Make a session the active one again, which in pyspark is the one of the last `createDataFrame`.

    Spark's writers take the JVM's active session, and `lockgate.connect` takes the one that pyspark keeps.
    """
    kept: Any = type(spark)
    kept._activeSession = spark
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.SparkSession.setActiveSession(spark._jsparkSession)


def limit(world: World, people: str) -> World:
    """Let ann see the rows of x, masked numbers, and no salary."""
    world.put(
        allow(f"{people}.*", users=["ann"]),
        deny(f"{people}.salary", users=["ann"]),
        mask(f"{people}.ssn", "MASK_SHOW_LAST_4", users=["ann"]),
        row_filter(people, "dept = 'x'", users=["ann"]),
    )
    return world

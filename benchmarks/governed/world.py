"""A warehouse under policies, with two users: one sees everything, the other some rows and values."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness import timed
from ranger_world import allow, mask, row_filter, service

from lockgate import Lake
from lockgate.governance import PolicyFiles, RangerAuthorizer
from lockgate.plugins import plugins

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPEN, LIMITED = "olga", "liam"
# The names of functions that no policies are decided for.
WITHOUT = ("off", "by hand")
ACTS = "spark.lockgate.acts-for-others"
PLUGIN = "governance-of-a-benchmark"


@dataclass(frozen=True)
class Limits:
    """What policies hide of a table: rows that do not meet `row_filter`, and the values of some columns."""

    row_filter: str | None = None
    masked: tuple[str, ...] = field(default=())

    def policies(self, path: str) -> list[dict[str, Any]]:
        """Return it in Ranger's form, for a table named `catalog.database.table`."""
        found = [mask(f"{path}.{column}", "MASK_NULL", users=[LIMITED]) for column in self.masked]
        if self.row_filter is not None:
            found.append(row_filter(path, self.row_filter, users=[LIMITED]))
        return found

    def query(self, name: str, columns: list[str]) -> str:
        """Return the query that somebody without policies writes to see the same."""
        shown = [f"CAST(NULL AS STRING) AS {each}" if each in self.masked else each for each in columns]
        kept = f" WHERE {self.row_filter}" if self.row_filter is not None else ""
        return f"SELECT {', '.join(shown)} FROM {name}{kept}"


class Took(NamedTuple):
    """The seconds of a round, and the processor seconds of Spark's JVM and this process in it."""

    wall: float
    processor: float


class World:
    """A warehouse whose policies can be switched on; each user has a session."""

    def __init__(self, lake: Lake, folder: Path, limits: Mapping[str, Limits]) -> None:
        """Write the policies; `limits` are by the full names of tables."""
        self._lake = lake
        jvm: Any = lake.spark._jvm
        self._jvm = jvm.java.lang.ProcessHandle.current().pid()
        lake.spark.sparkContext._jsc.sc().conf().set(ACTS, "true")
        files = folder / "policies.json"
        hidden = [each for path, limit in limits.items() for each in limit.policies(path)]
        everybody = allow("lake.*.*.*", users=[OPEN, LIMITED])
        files.write_text(json.dumps(service(everybody, *hidden)))
        self._authorizer = RangerAuthorizer(PolicyFiles(files), catalog="lake")
        self.sessions = {user: self._session(user) for user in (OPEN, LIMITED)}

    def _session(self, user: str) -> SparkSession:
        session = self._lake.spark.newSession()
        session.conf.set("spark.lockgate.user", user)
        return session

    def times(
        self, functions: Mapping[str, Callable[[], object]], rounds: int, warm_up: int = 1
    ) -> dict[str, list[Took]]:
        """Time functions in turn, all but those `WITHOUT` under the policies.

        Returns what each round took by name.
        """
        found: dict[str, list[Took]] = {name: [] for name in functions}
        for number in range(-warm_up, rounds):
            for name in list(functions)[:: 1 if number % 2 else -1]:
                with nullcontext() if name in WITHOUT else self.governed():
                    before = self._processor()
                    wall = timed(functions[name])
                    took = Took(wall, self._processor() - before)
                if number >= 0:
                    found[name].append(took)
        return found

    def _processor(self) -> float:
        times = Path(f"/proc/{self._jvm}/stat").read_text().rpartition(")")[2].split()
        return time.process_time() + sum(map(int, times[11:13])) / os.sysconf("SC_CLK_TCK")

    @contextmanager
    def governed(self) -> Iterator[None]:
        """Decide by the policies."""
        plugins().register(self._authorizer, PLUGIN)
        try:
            yield
        finally:
            plugins().unregister(PLUGIN)
            # Spark's JVM learns it by an answer of Python's.
            self._lake.sql("SHOW NAMESPACES IN lake").collect()

    def close(self) -> None:
        """Let no session name its user any more."""
        self._lake.spark.sparkContext._jsc.sc().conf().remove(ACTS)

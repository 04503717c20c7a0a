"""Lookups of a Spark application: caches kept by the executors, gauges in Spark's metric system.

The connector's plugin has each executor ask the driver what to do (`io.lockgate.spark.lookup`). Here is what
the driver wants: a `standby` process in each executor for each lookup, of which one in each cache's folder
becomes the owner. Their messages arrive as the operation `lookup.event`, and `lookup.poll` fetches the
commands for an executor. An owner requests keys the same way, from the executor to the driver. So no key is
in a conf, an argument or a file.
"""

from __future__ import annotations

import json
import logging
import threading
from typing import TYPE_CHECKING, Any

from lockgate.errors import LookupOwnerWarning, warn_user
from lockgate.framework.plugins import BridgeContext
from lockgate.framework.spark import java_class
from lockgate.lookup.driver.cache_hosts import CacheServers, Listener, LocalCacheHost
from lockgate.lookup.driver.waiting_commands import WaitingCommands
from lockgate.lookup.server.pipe import answer_about_keys
from lockgate.lookup.server.server_messages import (
    CacheCommand,
    Command,
    Event,
    EventRequest,
    KeyReply,
    OpenCache,
    PollAnswer,
    PollRequest,
    StartCommand,
)
from lockgate.lookup.spec.status import gauge_name

if TYPE_CHECKING:
    from lockgate.framework.keys import KeyProvider
    from lockgate.lookup.cache.directory import CacheDirectory
    from lockgate.lookup.spec.status import LookupStatus

PLUGIN_CLASS = "io.lockgate.spark.LockgatePlugin"

_log = logging.getLogger("lockgate.lookup")

_CENSUS_SECONDS = 0.2
# An executor that has not asked for this time counts as lost: batches wait for it no more.
_LONGEST_SILENCE_MILLIS = 10_000

_running: dict[str, ExecutorCacheServers] = {}
_running_lock = threading.Lock()
_commands = WaitingCommands()
# The applications that have had the warning.
_warned: set[str] = set()


def cache_host_for(spark: Any) -> DriverCacheHost:
    """Return the site of a Spark session's lookups: the executors, or the driver if it is alone."""
    context = spark.sparkContext
    if executors_keep(spark):
        return ExecutorCacheHosts(context)
    return DriverCacheHost(context)


def executors_keep(spark: Any) -> bool:
    """Say whether the executors of a Spark session keep the caches of lookups."""
    context = spark.sparkContext
    return not _is_alone(context) and PLUGIN_CLASS in str(context.getConf().get("spark.plugins", ""))


def _is_alone(context: Any) -> bool:
    master = str(context.master)
    return master == "local" or master.startswith("local[")


def warn_of_detached_cache_server(spark: Any) -> None:
    """Warn, once an application, if the executors could keep caches but do not."""
    context = spark.sparkContext
    application = str(context.applicationId)
    if _is_alone(context) or executors_keep(spark) or application in _warned:
        return
    _warned.add(application)
    warn_user(
        "lookups keep their caches on the driver's host only, by a process of the driver, since executors "
        f"run without Lockgate's plugin: start Spark with spark.plugins={PLUGIN_CLASS} (lockgate.connect and "
        "lockgate.configure set it, before the session is made), or let lookup.cache-dir be a folder that "
        "all hosts share",
        LookupOwnerWarning,
    )


class DriverCacheHost(LocalCacheHost):
    """The driver's host; lookups are shown by Spark's metric system."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._gauges: Any = java_class(context, "io.lockgate.spark.lookup.owner.Gauges")
        self._shown: dict[str, dict[str, float]] = {}

    def publish(self, status: LookupStatus) -> None:
        """Set the gauges of a lookup, if any has changed."""
        values = _gauge_values(status)
        prefix = gauge_name(status)
        if self._shown.get(prefix) != values:
            self._shown[prefix] = values
            self._quietly("publish", prefix, json.dumps(values))

    def withdraw(self, status: LookupStatus) -> None:
        """Remove the gauges of a lookup."""
        self._shown.pop(gauge_name(status), None)
        self._quietly("withdraw", gauge_name(status))

    def ended(self) -> bool:
        """Say whether the SparkContext was stopped, by this process or by the JVM."""
        jvm_context = self._context._jsc
        try:
            return jvm_context is None or bool(jvm_context.sc().isStopped())
        except Exception as error:  # the JVM has ended
            _log.debug("the application has ended: %s", error)
            return True

    def _quietly(self, method: str, *arguments: str) -> None:
        try:
            getattr(self._gauges, method)(*arguments)
        except Exception as error:  # the JVM ends before Python does: a gauge is no reason to fail
            _log.debug("a gauge could not be set: %s", error)


def _gauge_values(status: LookupStatus) -> dict[str, float]:
    return {
        "askedRows": status.asked_rows,
        "hitRows": status.hit_rows,
        "hitRate": status.hit_rate or 0.0,
        "snapshot": status.served_snapshot or 0,
        "refreshLagMillis": status.lag_millis,
        "cacheRows": status.rows,
        "cacheBytes": status.bytes,
        "buildMillis": round(status.build_seconds * 1000),
        "failures": status.failures,
        "ownerRestarts": status.owner_restarts,
        "hosts": len(status.hosts),
    }


class ExecutorCacheHosts(DriverCacheHost):
    """The executors' hosts."""

    local = False

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self._executors: Any = java_class(context, "io.lockgate.spark.lookup.owner.Executors")
        # The Python of Spark's own workers, which must find Lockgate as well.
        self._python = str(context.pythonExec)

    def start(
        self, opening: OpenCache, keys: KeyProvider | None, directory: CacheDirectory, listener: Listener
    ) -> CacheServers:
        """Have each executor start a process for a lookup, now and when it joins."""
        return ExecutorCacheServers(self._executors, self._python, opening, keys, listener)


class ExecutorCacheServers:
    """The processes of one lookup in all executors; a link is an executor's id."""

    def __init__(
        self, executors: Any, python: str, opening: OpenCache, keys: KeyProvider | None, listener: Listener
    ) -> None:
        self.name = opening["name"]
        self._executors = executors
        self._start: StartCommand = {
            "do": "start",
            "name": self.name,
            # -P: somebody else's module may lie in the current folder.
            "command": [python, "-P", "-m", "lockgate.lookup.server.standby"],
            "opening": opening,
        }
        self._keys = keys
        self._listener = listener
        self._started: set[str] = set()
        self._closed = threading.Event()
        with _running_lock:
            _running[self.name] = self
            executors.hurry(True)
        self._look()
        self._thread = threading.Thread(target=self._watch, name="lockgate-executors", daemon=True)
        self._thread.start()

    def send(self, link: str, message: CacheCommand) -> bool:
        """Leave a message for the process of an executor; False if the executor is gone."""
        return self._post(link, {"do": "say", "name": self.name, "message": message})

    def expected(self) -> bool:
        """Say whether there is an executor."""
        return bool(self._started)

    def rest(self) -> bool:
        """Return False: tasks call for the owner of their own host."""
        return False

    def wake(self) -> None:
        """Do nothing: they do not rest."""

    def receive(self, link: str, event: Event) -> list[KeyReply]:
        """Process a message from a process, and return the answer."""
        if event["event"] == "ask":
            return [answer_about_keys(self._keys, event)] if self._keys is not None else []
        self._listener(link, event)
        return []

    def close(self) -> None:
        """End the processes."""
        self._closed.set()
        self._thread.join(5)
        with _running_lock:
            _running.pop(self.name, None)
            last = not _running
        for link in sorted(self._started):
            self._post(link, {"do": "stop", "name": self.name})
            self._listener(link, {"event": "gone"})
        if last:
            self._quietly(lambda: self._executors.hurry(False))

    def _post(self, link: str, command: Command) -> bool:
        _commands.add(link, command)
        if self._quietly(lambda: self._executors.call(link)):
            return True
        _commands.forget(link, self.name)  # the executor is gone
        return False

    @staticmethod
    def _quietly(call: Any) -> Any:
        try:
            return call()
        except Exception as error:  # the application has ended, and its executors with it
            _log.debug("the executors cannot be reached: %s", error)
            return None

    def _watch(self) -> None:
        while not self._closed.wait(_CENSUS_SECONDS):
            self._look()

    def _look(self) -> None:
        census = self._quietly(self._executors.census)
        silence: dict[str, int] = json.loads(census) if census is not None else {}
        living = {link for link, millis in silence.items() if millis < _LONGEST_SILENCE_MILLIS}
        for link in sorted(living - self._started):
            if self._post(link, self._start):
                self._started.add(link)
        for link in sorted(self._started - living):
            self._started.discard(link)
            _commands.forget(link, self.name)
            self._listener(link, {"event": "gone"})


def commands_of(context: BridgeContext, request: PollRequest) -> PollAnswer:
    """Return the commands that wait for an executor, each once: the operation `lookup.poll`."""
    return {"commands": _commands.take(request["executor"])}


def cache_server_event(context: BridgeContext, request: EventRequest) -> list[KeyReply]:
    """Process a message from a process of an executor: the operation `lookup.event`."""
    with _running_lock:
        owners = _running.get(request["name"])
    # An owner that was told to end may still send messages.
    return [] if owners is None else owners.receive(request["executor"], request["event"])

"""The query services of a driver: each a process that answers for one table, started again when it ends.

`CALL sys.query_service` starts one, and `CALL sys.stop_query_service` ends it.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from lockgate.errors import AccessDeniedError, InputError, LookupCacheError
from lockgate.framework.plugins import plugins
from lockgate.lookup.driver.service_process import ServiceEvent, ServiceOrder, check_table
from lockgate.lookup.remote.registration import is_registered, remove_registration
from lockgate.lookup.remote.secret import Secret
from lockgate.lookup.server.cache_server_process import cache_server_environment
from lockgate.lookup.spec.failures import error_from_json
from lockgate.procedures import DryRun, Int, ProcedureContext, TableName, TypedProcedure

if TYPE_CHECKING:
    from lockgate.framework.store import Catalog, Table

_log = logging.getLogger("lockgate.lookup")

_START_SECONDS = 60.0
_END_SECONDS = 5.0
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0
# A service that lived this long was well: the next one starts without a pause.
_WELL_AFTER_SECONDS = 10.0
_MOST_PORTS = 65535
_LOCAL = "127.0.0.1"

_lock = threading.Lock()
_services: dict[str, RunningService] = {}


class RunningService:
    """A service of this driver, as a process that is replaced whenever it ends until `close`."""

    def __init__(self, order: ServiceOrder) -> None:
        self._order = order
        self._closed = threading.Event()
        self._changed = threading.Condition()
        self._process: subprocess.Popen[bytes] | None = None
        self._event: ServiceEvent | None = None
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._keep_running, name="lockgate-service", daemon=True)
        self._thread.start()

    def wait(self) -> ServiceEvent:
        """Wait until it answers; raises the error of its start, LookupCacheError if that takes too long."""
        deadline = time.monotonic() + _START_SECONDS
        with self._changed:
            while self._event is None:
                if self._error is not None:
                    raise self._error
                left = deadline - time.monotonic()
                if left <= 0:
                    raise LookupCacheError(
                        f"the query service for {self._order['table']} did not start in "
                        f"{_START_SECONDS:.0f} s: this host may be too busy; call again"
                    )
                self._changed.wait(left)
            return self._event

    def close(self) -> None:
        """End the process and wait for it."""
        self._closed.set()
        with self._changed:
            process = self._process
        if process is not None:
            with contextlib.suppress(OSError):
                assert process.stdin is not None
                process.stdin.close()
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._thread.join(_END_SECONDS)

    def _keep_running(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while not self._closed.is_set():
            started = time.monotonic()
            try:
                self._run_once()
            except OSError as error:
                _log.warning("cannot start the query service for %s: %s", self._order["table"], error)
            if time.monotonic() - started > _WELL_AFTER_SECONDS:
                pause = _FIRST_PAUSE_SECONDS
            if self._closed.wait(pause):
                return
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    def _run_once(self) -> None:
        with self._changed:
            if self._closed.is_set():
                return
            # -P: somebody else's module may lie in the current folder.
            process = self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "lockgate.lookup.driver.service_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=cache_server_environment(),
                start_new_session=True,
            )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with contextlib.suppress(OSError):  # it has ended, and is replaced
                process.stdin.write(json.dumps(self._order).encode() + b"\n")
                process.stdin.flush()
            self._note(process.stdout.readline())
            process.stdout.read()
            code = process.wait()
        finally:
            process.stdout.close()
            with contextlib.suppress(OSError):
                process.stdin.close()
        with self._changed:
            self._event = None
        if not self._closed.is_set():
            _log.warning(
                "the query service for %s (pid %d) ended with %d; starting another",
                self._order["table"],
                process.pid,
                code,
            )

    def _note(self, line: bytes) -> None:
        try:
            content: Any = json.loads(line)
        except ValueError:  # it was killed first
            return
        with self._changed:
            if "error" in content:
                self._error = error_from_json(content["error"])
            else:
                self._event, self._error = content, None
            self._changed.notify_all()


def start(catalog: Catalog, table: Table, host: str = _LOCAL, port: int = 0) -> ServiceEvent:
    """Start the query service of a table in place of one that this driver runs; return it once it answers.

    Raises AccessDeniedError for tables with encrypted columns and where policies decide access,
    UnsupportedError for tables that cannot be asked by their keys, and InputError or UnsafePathError for a
    secret that cannot be used.
    """
    check(table, host, port)
    order: ServiceOrder = {
        "warehouse": catalog.file_system.uri(catalog.warehouse),
        "options": dict(catalog.options or {}),
        "table": str(table.identifier),
        "host": host,
        "port": port,
    }
    stop(table)
    service = RunningService(order)
    try:
        event = service.wait()
    except BaseException:
        service.close()
        raise
    with _lock:
        if not _services:
            atexit.register(close_all)
        _services[table.location] = service
    return event


def check(table: Table, host: str, port: int) -> None:
    """Check that a service may start; errors as `start`."""
    if not host or any(letter.isspace() or letter in "/@?#" for letter in host):
        raise InputError(f"{host!r} is no name or address of a host")
    if not 0 <= port <= _MOST_PORTS:
        raise InputError(f"{port} is no port: write 0 for any, or 1 to {_MOST_PORTS}")
    if plugins().decides_access():
        raise AccessDeniedError(
            f"policies decide who reads {table.identifier}, and a query service does not know who asks: look "
            "up without lookup.remote"
        )
    check_table(table)
    Secret.from_environment()


def stop(table: Table) -> bool:
    """End the query service that this driver runs for a table; False if it runs none."""
    with _lock:
        service = _services.pop(table.location, None)
    if service is not None:
        service.close()
    return service is not None


def close_all() -> None:
    """End the query services of this driver."""
    with _lock:
        running = list(_services.values())
        _services.clear()
    for service in running:
        service.close()


@dataclass(frozen=True)
class _StartArguments:
    table: TableName
    host: Annotated[
        str | None,
        "address of this host, where the service listens and askers find it (default: `spark.driver.host`)",
    ] = None
    port: Annotated[Int, "port; 0: any that is free"] = 0
    dry_run: Annotated[bool, "only check whether a service may serve the table"] = False


@dataclass(frozen=True)
class _StartRow:
    address: Annotated[str | None, "host and port; NULL after a dry run"]
    fingerprint: Annotated[str | None, "SHA-256 of the service's certificate"]
    pid: Annotated[int | None, "process"]


class QueryServiceProcedure(TypedProcedure[_StartArguments, _StartRow]):
    """Start a service that answers lookups with lookup.remote=true, as long as this driver runs."""

    name = "query_service"
    needs_all_rows = False

    def run(self, context: ProcedureContext, arguments: _StartArguments) -> list[_StartRow]:
        """Start; errors as `start`."""
        spark = context.require_spark("a query service lives as long as the driver that starts it, and")
        table = context.table(arguments.table)
        host = arguments.host or spark.sparkContext.getConf().get("spark.driver.host", _LOCAL)
        if arguments.dry_run:
            check(table, host, arguments.port)
            return [_StartRow(None, None, None)]
        event = start(context.catalog, table, host, arguments.port)
        return [_StartRow(event["address"], event["fingerprint"], event["pid"])]


@dataclass(frozen=True)
class _StopArguments:
    table: TableName
    dry_run: DryRun = False


@dataclass(frozen=True)
class _StopRow:
    stopped_services_count: Annotated[int, "services of this driver that ended"]
    removed_registrations_count: Annotated[int, "registrations that were left, as those of killed services"]


class StopQueryServiceProcedure(TypedProcedure[_StopArguments, _StopRow]):
    """End the query service of a table, and remove the registration that askers find it by."""

    name = "stop_query_service"
    needs_all_rows = False

    def run(self, context: ProcedureContext, arguments: _StopArguments) -> list[_StopRow]:
        """Stop; a service of another driver goes on, and nobody finds it."""
        table = context.table(arguments.table)
        if arguments.dry_run:
            return [_StopRow(int(table.location in _services), int(is_registered(table)))]
        stopped = stop(table)
        # Its own process has removed it by now, unless that was killed.
        return [_StopRow(int(stopped), int(remove_registration(table)))]

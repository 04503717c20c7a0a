"""The audit log: takes records of decisions and hands them to all destinations; no query waits for one."""

from __future__ import annotations

import atexit
import logging
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import OptionError
from lockgate.framework.delivery import Delivery, Line, Spool
from lockgate.framework.governance.audit.audit_options import Destination, destinations_of
from lockgate.framework.governance.audit.destinations import FileAudit, FolderAudit
from lockgate.framework.governance.audit.record import Record, Writer
from lockgate.framework.governance.ranger.protocol.admin_settings import read_xml
from lockgate.framework.plugins import AuditSink, plugins

_log = logging.getLogger("lockgate.governance")
_AT_EXIT = 5.0
# Files in an object store cost more than their bytes, so few are written.
_LINGER = 60.0


@checked_arguments
class AuditLog:
    """Records of decisions, in Ranger's fields; hand the object itself to `RangerAuthorizer(audit=...)`.

    A destination is a file, the address of a folder (`s3://...`, `hdfs://...`, or one that ends with `/`), or
    an object with `write(lines)`, such as `SolrAudit`. Plugins add theirs by `lockgate_audit_sinks`. Each has
    a queue of `capacity` records; with `spool`, a folder, also files of records that it has not taken yet, of
    `spool_bytes` at most. `dropped` counts records that did not fit or could not be written. Literals in
    statements are masked unless `literals` is set.
    """

    def __init__(
        self,
        *destinations: str | Path | AuditSink | Destination,
        service: str,
        spool: str | Path | None = None,
        capacity: int = 10_000,
        spool_bytes: int = 1 << 28,
        literals: bool = False,
        cluster: str = "",
    ) -> None:
        """Start a thread for each destination; `service` is the service's name in Ranger.

        Raises OptionError for unusable destinations, UnsafePathError for a spool of another user.
        """
        self._writer = Writer(service, cluster=cluster, literals=literals)
        self._capacity, self._spool_bytes = capacity, spool_bytes
        self._spool = None if spool is None else Path(spool)
        self._count, self._lock = 0, threading.Lock()
        self._of_plugins: tuple[Mapping[str, AuditSink], list[Delivery[Line]]] = ({}, [])
        self._lanes = [self._lane(number, _destination(each)) for number, each in enumerate(destinations)]
        atexit.register(self.close, _AT_EXIT)

    @classmethod
    def from_files(cls, *paths: str | Path, service: str, literals: bool = False) -> AuditLog:
        """Return the log of a Ranger plugin's XML files (`xasecure.audit.*`); see `from_options`."""
        return cls.from_options(read_xml(paths), service=service, literals=literals)

    @classmethod
    def from_options(cls, options: Mapping[str, str], *, service: str, literals: bool = False) -> AuditLog:
        """Return the log of Ranger's options, without a destination if audit is disabled.

        Raises OptionError for destinations of Ranger that Lockgate does not have, such as Kafka: they take a
        plugin.
        """
        return cls(*destinations_of(options), service=service, literals=literals)

    def __call__(self, record: Record) -> None:
        """Queue a record; never waits."""
        lanes = list(self._all())
        if not lanes:
            return
        with self._lock:
            self._count += 1
            count = self._count
        line = self._writer.line(record, count)
        for lane in lanes:
            lane.offer(line)

    @property
    def dropped(self) -> int:
        """Return the number of records that a destination lost, over all destinations."""
        return sum(lane.dropped for lane in self._all())

    @property
    def refused(self) -> int:
        """Return the number of records that a destination refused for good, over all destinations."""
        return sum(lane.refused for lane in self._all())

    @property
    def written(self) -> int:
        """Return the number of records that destinations have taken."""
        return sum(lane.written for lane in self._all())

    def flush(self, seconds: float = 30.0) -> bool:
        """Wait until all records are delivered; False if that takes longer."""
        end = time.monotonic() + seconds
        lanes = list(self._all())
        return all(lane.flush(max(0.0, end - time.monotonic())) for lane in lanes)

    def close(self, seconds: float = 30.0) -> None:
        """Deliver what is queued, as long as that takes no longer, and end; the spools keep the rest."""
        atexit.unregister(self.close)
        end = time.monotonic() + seconds
        for lane in self._all():
            lane.close(max(0.0, end - time.monotonic()))

    def _all(self) -> Iterator[Delivery[Line]]:
        yield from self._lanes
        sinks = plugins().audit_sinks()
        with self._lock:
            if self._of_plugins[0] is not sinks:
                kept = dict(zip(self._of_plugins[0], self._of_plugins[1], strict=True))
                for name in kept.keys() - sinks.keys():
                    kept[name].close(0.0)  # it delivers what is queued and ends
                self._of_plugins = (
                    sinks,
                    [kept.get(name) or self._lane(name, Destination(sink)) for name, sink in sinks.items()],
                )
            lanes = self._of_plugins[1]
        yield from lanes

    def _lane(self, name: int | str, destination: Destination) -> Delivery[Line]:
        folder = destination.spool or self._spool
        if folder is not None:
            part = re.sub(r"[^A-Za-z0-9_-]", "_", f"{name}")
            folder = Path(folder) / (f"destination-{part}" if isinstance(name, int) else f"plugin-{part}")
        spool = None if folder is None else Spool(folder, most_bytes=self._spool_bytes)
        return Delivery(
            f"audit destination {str(name)!r}",
            destination.sink.write,
            capacity=self._capacity,
            linger=destination.linger,
            spool=spool,
            log=_log,
        )


def _destination(given: str | Path | AuditSink | Destination) -> Destination:
    if isinstance(given, Destination):
        return given
    if not isinstance(given, str | os.PathLike):
        if not isinstance(given, AuditSink):
            raise OptionError(f"{given!r} is no destination of audit: it needs a path, or write(lines)")
        return Destination(given)
    text = os.fspath(given)
    if "://" in text or text.endswith("/"):
        return Destination(FolderAudit(text), linger=_LINGER)
    return Destination(FileAudit(text))

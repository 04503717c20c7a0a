"""Destinations of audit from Ranger's options, `xasecure.audit.destination.<name>.*`.

Source: Ranger's AuditProviderFactory, and the `ranger-*-audit.xml` of its plugins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lockgate.errors import OptionError
from lockgate.framework.governance.audit.destinations import FileAudit, FolderAudit, LoggerAudit, SolrAudit
from lockgate.framework.plugins import AuditSink

_PREFIX = "xasecure.audit.destination."
_SPOOL = "batch.filespool.dir"
_TRUE = ("true", "enabled")
_TOKEN = re.compile(r"%[^%]*%")


@dataclass(frozen=True)
class Destination:
    """A destination with its spool, and how many seconds a record may wait for others."""

    sink: AuditSink
    linger: float = 0.0
    spool: Path | None = None


def destinations_of(options: Mapping[str, str]) -> Iterator[Destination]:
    """Yield the enabled destinations; raises OptionError for those that Lockgate does not have."""
    if options.get("xasecure.audit.is.enabled", "true").lower() not in _TRUE:
        return
    for key in sorted(options):
        name = key.removeprefix(_PREFIX)
        if key == name or "." in name or options[key].lower() not in _TRUE:
            continue
        given = {
            each.removeprefix(f"{key}."): value
            for each, value in options.items()
            if each.startswith(f"{key}.")
        }
        yield _destination(name, given)


def _destination(name: str, given: Mapping[str, str]) -> Destination:
    spool = Path(given[_SPOOL]) if given.get(_SPOOL) else None
    linger = int(given.get("batch.interval.ms") or 3_000) / 1000
    if name == "solr":
        urls = tuple(
            each.strip().rstrip("/") for each in (given.get("urls") or "").split(",") if each.strip()
        )
        if not urls or urls == ("NONE",):
            raise OptionError(
                f"{_PREFIX}solr.urls is missing: Lockgate finds Solr by addresses, not by ZooKeeper"
            )
        user, password = given.get("user"), given.get("password")
        if user in (None, "", "NONE"):
            user = password = None
        return Destination(SolrAudit(*urls, user=user, password=password), linger, spool)
    if name == "hdfs":
        folder = _TOKEN.sub("", given.get("dir") or _missing(f"{_PREFIX}hdfs.dir")).rstrip("/")
        prefix = "config."
        confs = {key.removeprefix(prefix): value for key, value in given.items() if key.startswith(prefix)}
        return Destination(FolderAudit(folder, confs), 60.0, spool)
    if name == "file":
        folder = given.get("dir") or _missing(f"{_PREFIX}file.dir")
        return Destination(FileAudit(Path(folder) / "lockgate_audit.log"), 0.0, spool)
    if name == "log4j":
        return Destination(LoggerAudit(given.get("logger") or "ranger.audit"), 0.0, spool)
    raise OptionError(
        f"{_PREFIX}{name} is enabled, but Lockgate has solr, hdfs, file and log4j: disable it, and add a "
        "plugin with lockgate_audit_sinks for it"
    )


def _missing(name: str) -> str:
    raise OptionError(f"{name} is missing")

"""Destinations of audit: a file, a folder in any file system, Solr, a logger of Python."""

from __future__ import annotations

import http
import json
import logging
import os
import socket
import ssl
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import OptionError, RecordsRefusedError, StorageError
from lockgate.framework.delivery import Line, append_lines, bytes_of
from lockgate.framework.governance.ranger.protocol.admin_settings import one_try_client
from lockgate.framework.io import join, resolve
from lockgate.framework.net import (
    Authentication,
    HttpAnswer,
    NoAnswerError,
    UnusableAnswerError,
    address_fault,
)


@checked_arguments
class FileAudit:
    """Appends to one file of this host; several processes may share it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def write(self, lines: Sequence[Line]) -> None:
        """Append lines at once: all, or none if that fails."""
        number = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o640)
        try:
            append_lines(number, lines, to_disk=False)
        finally:
            os.close(number)


@checked_arguments
class FolderAudit:
    """Writes files into folders of days, in any file system: S3, HDFS, a disk.

    A file is never changed: object stores cannot append. `options` are those of the file system.
    """

    def __init__(self, folder: str, options: Mapping[str, str] | None = None) -> None:
        self._files, self._folder = resolve(folder, options)

    def write(self, lines: Sequence[Line]) -> None:
        """Write lines as a file of their own."""
        now = datetime.now(UTC)
        name = f"lockgate_audit_{socket.gethostname()}_{now:%H%M%S}_{uuid.uuid4().hex[:12]}.log"
        self._files.write_new(join(self._folder, f"{now:%Y%m%d}", name), bytes_of(lines))


# A document of a bad form, one that is too large, one with bad values: no later try changes that.
_REFUSALS = (
    http.HTTPStatus.BAD_REQUEST,
    http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    http.HTTPStatus.UNPROCESSABLE_ENTITY,
)


@checked_arguments
class SolrAudit:
    """Adds documents to a collection of Solr by HTTP, as `https://host:8983/solr/ranger_audits`.

    Several addresses are asked in turn, the one that answered last first. A password goes over https only.
    `ca` is a file of certificates to trust, in PEM.
    """

    def __init__(
        self,
        *urls: str,
        user: str | None = None,
        password: str | None = None,
        ca: str | Path | None = None,
        authentication: Authentication | None = None,
        timeout_seconds: float = 30.0,
    ) -> None:
        """Prepare the connection; raises OptionError for what is no address of Solr."""
        for url in urls:
            fault = address_fault(url, has_secret=password is not None)
            if fault is not None:
                raise OptionError(
                    f"an address of Solr, such as https://host:8983/solr/ranger_audits, {fault}"
                )
        if not urls:
            raise OptionError("give an address of Solr, as https://host:8983/solr/ranger_audits")
        self._urls = tuple(url.rstrip("/") for url in urls)
        tls = None
        if any(url.startswith("https://") for url in urls):
            tls = ssl.create_default_context(cafile=ca)
        self._solr = one_try_client(self._urls, tls, timeout_seconds, user, password, authentication)

    def __repr__(self) -> str:
        return f"SolrAudit({', '.join(map(repr, self._urls))})"

    def write(self, lines: Sequence[Line]) -> None:
        """Add lines as documents; a line that is there already is replaced.

        Raises StorageError, for documents that Solr will never take RecordsRefusedError.
        """
        documents = [_document(line) for line in lines]
        try:
            self._solr.ask(
                "POST", "/update", _check_taken, parameters={"commitWithin": "15000"}, document=documents
            )
        except NoAnswerError as error:
            raise StorageError(f"Solr takes no audit records: {error}") from error


def _check_taken(answer: HttpAnswer) -> None:
    if answer.status in _REFUSALS:
        raise RecordsRefusedError(f"Solr refuses audit records: {answer.url}: status {answer.status}")
    if answer.status != http.HTTPStatus.OK:
        raise UnusableAnswerError(f"answered with status {answer.status}")


def _document(line: Line) -> dict[str, Any]:
    """Return a line as Ranger's schema for Solr has it, whose times are in ISO 8601."""
    made = {**line, "evtTime": f"{line['evtTime'].replace(' ', 'T')}Z"}
    for ours, theirs in (
        ("cluster_name", "cluster"),
        ("zone_name", "zoneName"),
        ("policy_version", "policyVersion"),
    ):
        if ours in made:
            made[theirs] = made.pop(ours)
    return made


@checked_arguments
class LoggerAudit:
    """Hands each line to a logger of Python at INFO, as Ranger's destination log4j does to log4j."""

    def __init__(self, name: str = "ranger.audit") -> None:
        self._log = logging.getLogger(name)

    def write(self, lines: Sequence[Line]) -> None:
        """Log lines."""
        for line in lines:
            self._log.info("%s", json.dumps(line))

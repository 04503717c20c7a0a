"""Destinations of audit: files, S3, HDFS, Solr, and Ranger's options for them."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import solr_stand_in
from hdfs_on_disk import OnDisk
from s3_server import CREDENTIALS, S3Server
from solr_stand_in import Solr

from lockgate.errors import OptionError, RecordsRefusedError, StorageError
from lockgate.framework.delivery import write_accepted
from lockgate.framework.governance import AuditLog, Record
from lockgate.framework.governance.audit.audit_options import destinations_of
from lockgate.framework.governance.audit.destinations import FileAudit, FolderAudit, LoggerAudit, SolrAudit
from lockgate.framework.io import hdfs

LINES = [
    {"id": "run-1", "evtTime": "2026-01-02 03:04:05.678", "result": 0, "policy_version": 7, "zone_name": "z"},
    {"id": "run-2", "evtTime": "2026-01-02 03:04:05.679", "result": 1, "cluster_name": "east"},
]
RECORD = Record("ann", "select", "lake/db/t", "table", allowed=True, policy=3, version=7)
BASE = "xasecure.audit.destination."


@pytest.fixture
def solr() -> Iterator[Solr]:
    with solr_stand_in.running() as found:
        yield found


def parsed(data: bytes | str) -> list[Any]:
    return [json.loads(line) for line in data.splitlines()]


def test_a_file_is_continued_behind_half_a_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    path.write_text('{"id": "whole"}\n{"id": "ha')
    FileAudit(path).write(LINES)
    FileAudit(path).write(LINES)
    texts = path.read_text().splitlines()
    assert [json.loads(text) for text in texts[2:]] == LINES * 2


def test_solr_refuses_a_document_and_gets_the_others(solr: Solr) -> None:
    solr.refused = {"run-2"}
    sink = SolrAudit(f"{solr.url}/solr/ranger_audits")
    assert write_accepted(sink.write, LINES) == [LINES[1]]
    assert list(solr.documents) == ["run-1"]
    # A caller without the right to write tries again later: no record is at fault.
    solr.refused, solr.status = set(), 403
    with pytest.raises(StorageError, match="status 403") as caught:
        sink.write(LINES)
    assert not isinstance(caught.value, RecordsRefusedError)


def test_s3_gets_whole_files_by_day() -> None:
    server = S3Server()
    server.start()
    try:
        server.make_bucket("logs")
        folder = FolderAudit("s3://logs/ranger/audit", server.options())
        folder.write(LINES)
        folder.write(LINES)
        days = folder._files.list("logs/ranger/audit")
        (day,) = days
        assert len(day.name) == 8
        written = folder._files.list(day.path)
        assert [parsed(folder._files.read_bytes(each.path)) for each in written] == [LINES, LINES]
        assert CREDENTIALS["aws_secret_access_key"] not in repr(folder)
    finally:
        server.stop()


def test_hdfs_gets_whole_files_by_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdfs, "HdfsClient", lambda *_: OnDisk())
    FolderAudit(f"hdfs://nn1:8020{tmp_path}/audit").write(LINES)
    (written,) = (tmp_path / "audit").glob("*/lockgate_audit_*.log")
    assert parsed(written.read_text()) == LINES


def test_an_address_is_a_folder_whose_files_gather_records(tmp_path: Path) -> None:
    log = AuditLog(f"file://{tmp_path}/audit", f"{tmp_path}/other/", service="lake")
    for _ in range(100):
        log(RECORD)
    log.close()
    for folder in ("audit", "other"):
        (written,) = (tmp_path / folder).glob("*/*.log")
        assert len(parsed(written.read_text())) == 100


def test_solr_gets_documents_of_rangers_schema(solr: Solr) -> None:
    SolrAudit(f"{solr.url}/solr/ranger_audits/").write(LINES)
    assert solr.paths == ["/solr/ranger_audits/update?commitWithin=15000"]
    assert solr.documents["run-1"] == {
        "id": "run-1",
        "evtTime": "2026-01-02T03:04:05.678Z",
        "result": 0,
        "policyVersion": 7,
        "zoneName": "z",
    }
    assert solr.documents["run-2"]["cluster"] == "east"


def test_solr_is_asked_by_turns_and_says_why_not(solr: Solr) -> None:
    sink = SolrAudit("http://127.0.0.1:9/solr/a", f"{solr.url}/solr/a")
    sink.write(LINES)
    assert len(solr.documents) == 2
    solr.status = 503
    with pytest.raises(StorageError, match=r"status 503; http://127\.0\.0\.1:9/"):
        sink.write(LINES)


def test_solrs_password_is_sent_and_not_shown(solr: Solr) -> None:
    sink = SolrAudit(f"{solr.url}/solr/a", user="lock", password="gate-of-solr")
    sink.write(LINES)
    assert solr.users == ["lock:gate-of-solr"]
    assert "gate-of-solr" not in repr(sink)
    for wrong in ("http://solr.example:8983/solr/a", "https://lock:gate-of-solr@solr.example/solr/a"):
        with pytest.raises(OptionError) as refused:
            SolrAudit(wrong, user="lock", password="gate-of-solr")
        assert "gate-of-solr" not in str(refused.value)


def test_records_wait_while_solr_is_down(
    solr: Solr, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    solr.status = 500
    first = AuditLog(SolrAudit(f"{solr.url}/solr/a"), service="lake", spool=tmp_path / "spool")
    first(RECORD)
    assert not first.flush(0.3)
    first.close()
    assert "status 500" in caplog.text
    solr.status = 200
    second = AuditLog(SolrAudit(f"{solr.url}/solr/a"), service="lake", spool=tmp_path / "spool")
    assert second.flush(10)
    second.close()
    assert (len(solr.documents), first.dropped, second.dropped) == (1, 0, 0)


def test_a_logger_gets_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ranger.audit")
    LoggerAudit().write(LINES)
    assert [json.loads(each.getMessage()) for each in caplog.records] == LINES


def test_rangers_audit_file_is_read(solr: Solr, tmp_path: Path) -> None:
    said = {
        "xasecure.audit.is.enabled": "true",
        f"{BASE}solr": "true",
        f"{BASE}solr.urls": f"{solr.url}/solr/ranger_audits",
        f"{BASE}solr.user": "NONE",
        f"{BASE}solr.password": "NONE",
        f"{BASE}solr.batch.filespool.dir": f"{tmp_path}/spool/solr",
        f"{BASE}hdfs": "enabled",
        f"{BASE}hdfs.dir": f"file://{tmp_path}/audit/%app-type%/%time:yyyyMMdd%",
        f"{BASE}hdfs.batch.filespool.dir": f"{tmp_path}/spool/hdfs",
        f"{BASE}file": "true",
        f"{BASE}file.dir": str(tmp_path),
        f"{BASE}kafka": "false",
        "xasecure.audit.solr.is.enabled": "false",
    }
    path = tmp_path / "ranger-paimon-audit.xml"
    each = (f"<property><name>{key}</name><value>{value}</value></property>" for key, value in said.items())
    path.write_text(f"<configuration>{''.join(each)}</configuration>")
    log = AuditLog.from_files(path, service="lake")
    log(RECORD)
    log.close()
    assert (log.written, log.dropped) == (3, 0)
    assert len(solr.documents) == 1
    assert len(parsed((tmp_path / "lockgate_audit.log").read_text())) == 1
    assert len(list((tmp_path / "audit").glob("*/*.log"))) == 1


def test_options_that_cannot_be_followed_are_refused() -> None:
    for given, words in (
        ({f"{BASE}kafka": "true"}, "kafka is enabled, but Lockgate has solr"),
        ({f"{BASE}solr": "true"}, r"solr\.urls is missing"),
        ({f"{BASE}solr": "true", f"{BASE}solr.urls": "NONE"}, "not by ZooKeeper"),
        ({f"{BASE}hdfs": "true"}, r"hdfs\.dir is missing"),
    ):
        with pytest.raises(OptionError, match=words):
            list(destinations_of(given))
    assert list(destinations_of({"xasecure.audit.is.enabled": "false", f"{BASE}kafka": "true"})) == []

"""Grants of scans: for whom, for which columns, until when; and the keys that go with them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lockgate.framework.access import Principal, SqlDecision
from lockgate.framework.spark.enforcement import scan_grants
from lockgate.framework.spark.enforcement.decisions import readable_columns, renamed
from lockgate.framework.spark.enforcement.foreign_relations import refusal_of_path, targets_of
from lockgate.framework.spark.enforcement.scan_grants import Grants, ScanGrant

HIDDEN = SqlDecision(denied={"pay": ("role hr",)}, row_filter="id > 1")


def grant(user: str = "ann", decision: SqlDecision = HIDDEN) -> ScanGrant:
    types = {"id": "BIGINT", "pay": "DOUBLE"}
    return ScanGrant(Principal(user), "db.t", "/w/t", "1", types, {}, decision, frozenset({"id"}))


def test_equal_grants_have_one_token_and_others_another() -> None:
    found = Grants()
    assert found.token(grant()) == found.token(grant())
    assert found.token(grant()) != found.token(grant("bob"))
    assert found.token(grant()) != found.token(grant(decision=SqlDecision()))
    assert found.find(found.token(grant("bob"))) == grant("bob")
    assert found.find("guessed") is None
    assert found.find(None) is None


def test_the_oldest_grants_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_grants, "_MOST", 2)
    found = Grants()
    tokens = [found.token(grant(user)) for user in ("ann", "bob", "cal")]
    assert [found.find(token) is None for token in tokens] == [True, False, False]
    assert found.token(grant("ann")) != tokens[0]


def test_a_scan_reads_the_columns_of_its_grant_and_all_without_one() -> None:
    found = Grants()
    context: Any = SimpleNamespace(
        dispatcher=SimpleNamespace(grants=found), request={"grant": found.token(grant())}
    )
    assert readable_columns(context) == {"id"}
    context.request = {"grant": None}
    assert readable_columns(context) is None


def test_a_policy_holds_for_a_column_under_its_former_name() -> None:
    today = SqlDecision(denied={"pay": ("role hr",)}, masks={"tax": "NULL"})
    past = renamed(today, {"salary": "pay"})
    assert past.denied == {"salary": ("role hr",)}
    assert past.masks == {"tax": "NULL"}
    filtered = renamed(SqlDecision(row_filter="pay > 5"), {"salary": "pay"})
    assert filtered.row_filter is None
    assert "had other names" in filtered.apply_for[0]


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ("file:/lake/db/t", True),
        ("/lake", True),
        ("/", True),
        ("file:///lake/db/../db/t", True),
        ("/lakes", False),
        ("s3a://b/lake/t", True),
        ("s3a://b/lakes", False),
    ],
)
def test_files_of_a_warehouse_are_read_as_tables(path: str, refused: bool) -> None:
    found = refusal_of_path({"kind": "path", "paths": [path]}, ["/lake", "s3://b/lake"])
    assert (found is not None) is refused


def test_files_are_decided_about_path_by_path() -> None:
    """One text of several paths would match a policy on the first of them."""
    targets = targets_of({"kind": "path", "paths": ["file:/open/a", "/secret/b", "s3a://bucket/c"]})
    assert [target.name for target in targets] == ["/open/a", "/secret/b", "s3://bucket/c"]
    assert {target.kind for target in targets} == {"path"}

"""Policies decided for Spark: denied columns, masks by name and type, row filters as they are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ranger_world import allow, deny, mask, row_filter, service

from lockgate.framework.access import AccessRequest, Action, Principal, SqlDecision, Target
from lockgate.framework.governance import PolicyFiles, RangerAuthorizer, Record

TYPES = {"id": "BIGINT", "ssn": "STRING", "code": "VARCHAR(5)", "born": "DATE"}


class Policies:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "policies.json"
        self.records: list[Record] = []

    def decide(self, *policies: dict[str, Any], target: Target | None = None, **more: Any) -> SqlDecision:
        self.path.write_text(json.dumps(service(*policies)))
        authorizer = RangerAuthorizer(
            PolicyFiles(self.path), catalog="lake", audit=self.records.append, **more
        )
        asked = AccessRequest(
            Principal("ann"), Action.SELECT, target or Target("table", "db.t"), frozenset(TYPES)
        )
        found = authorizer.lockgate_authorize_sql(asked, TYPES, records=False)
        assert found is not None
        return found


@pytest.fixture
def policies(tmp_path: Path) -> Policies:
    return Policies(tmp_path)


def test_columns_are_denied_one_by_one(policies: Policies) -> None:
    found = policies.decide(allow("lake.db.t.id|ssn|code", users=["ann"]), apply_at="hr")
    assert dict(found.denied) == {"born": ("select on column db.t.born in service paimon",)}
    assert found.ask == ("ask at hr",)
    assert policies.records == []


def test_a_table_of_which_nothing_is_allowed_is_refused_whole(policies: Policies) -> None:
    found = policies.decide(deny("lake.db.t.*", users=["ann"]))
    assert found.apply_for == ("select on table db.t in service paimon",)


def test_a_row_filter_is_handed_over_as_it_is(policies: Policies) -> None:
    text = "id IN (SELECT max(id) FROM lake.db.other)"
    found = policies.decide(allow("lake.db.t.*", users=["ann"]), row_filter("lake.db.t", text, users=["ann"]))
    assert found.row_filter == text


@pytest.mark.parametrize(
    ("column", "kind", "value", "expected"),
    [
        ("ssn", "MASK_NULL", None, "NULL"),
        ("id", "MASK_HASH", None, "NULL"),
        ("ssn", "MASK_HASH", None, "upper(sha2(CAST(`ssn` AS BINARY), 256))"),
        ("id", "MASK_SHOW_LAST_4", None, "NULL"),
        ("born", "MASK_DATE_SHOW_YEAR", None, "trunc(`born`, 'YEAR')"),
        ("ssn", "CUSTOM", "concat({col}, '{type}')", "concat(`ssn`, 'STRING')"),
        ("code", "CUSTOM", "'longer than five'", "left(CAST(('longer than five') AS STRING), 5)"),
        ("ssn", "CUSTOM", None, "NULL"),
        ("ssn", "A_MASK_THAT_NOBODY_KNOWS", None, "NULL"),
    ],
)
def test_masks_suit_the_type_and_never_show_the_value(
    policies: Policies, column: str, kind: str, value: str | None, expected: str
) -> None:
    found = policies.decide(
        allow("lake.db.t.*", users=["ann"]), mask(f"lake.db.t.{column}", kind, value=value, users=["ann"])
    )
    assert found.masks == {column: expected}


def test_other_relations_of_a_session_are_decided_too(policies: Policies) -> None:
    hive = Target("table", "db.t", catalog="spark_catalog")
    assert policies.decide(allow("lake.db.t.*", users=["ann"]), target=hive).apply_for
    assert not policies.decide(allow("spark_catalog.*.*.*", users=["ann"]), target=hive).is_restricted
    files = Target("path", "/data/x", catalog="spark_catalog")
    found = policies.decide(allow("*.*.*.*", users=["ann"]), target=files)
    assert found.apply_for == ("select on path /data/x: service paimon has no level path",)

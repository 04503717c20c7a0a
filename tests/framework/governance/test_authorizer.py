"""Ranger's policies put upon tables that Python reads and changes."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from ranger_world import allow, deny, mask, row_filter, service

from lockgate.errors import AccessDeniedError, PluginError, PolicyError
from lockgate.framework.access import Caller, Principal
from lockgate.framework.governance import PolicyFiles, RangerAuthorizer, Record
from lockgate.framework.governance.row_filters import parsed
from lockgate.framework.plugins import plugins
from lockgate.framework.store import Catalog, Schema
from lockgate.framework.store.metadata.identifier import Identifier
from lockgate.pushdown import filter_table

ANN, BOB = Principal("ann", frozenset({"staff"})), Principal("bob")
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "dept": ["x", "y", "x"],
        "ssn": ["123-45", "234-56", "345-67"],
        "salary": pa.array([10.0, 20.0, 30.0]),
    }
)


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    folder = str(tmp_path / "warehouse")
    catalog = Catalog(folder)
    catalog.create_namespace("db")
    table = catalog.create_table("db.people", Schema.from_arrow(ROWS.schema))
    table.append(ROWS)
    return folder


class Governed:
    """A warehouse under policies, which can be changed."""

    def __init__(self, warehouse: str, folder: Path) -> None:
        self._path, self.records = folder / "policies.json", list[Record]()
        self.put()
        self.authorizer = RangerAuthorizer(
            PolicyFiles(self._path, seconds=0),
            catalog="lake",
            warehouse=warehouse,
            apply_at="the data office",
            audit=self.records.append,
        )
        self._warehouse, self._version = warehouse, 0

    def put(self, *policies: dict[str, Any], **more: Any) -> None:
        self._version = getattr(self, "_version", 0) + 1
        self._path.write_text(json.dumps(service(*policies, policyVersion=self._version, **more)))
        os.utime(self._path, ns=(self._version * 10**9, self._version * 10**9))

    def catalog(self, principal: Principal = ANN) -> Catalog:
        return Catalog(self._warehouse, principal=principal)

    def people(self, principal: Principal = ANN) -> Any:
        return self.catalog(principal).load_table("db.people")


@pytest.fixture
def governed(warehouse: str, tmp_path: Path) -> Iterator[Governed]:
    found = Governed(warehouse, tmp_path)
    plugins().register(found.authorizer, "governance-of-a-test")
    yield found
    plugins().unregister("governance-of-a-test")


def test_reads_show_permitted_rows_and_masked_values(governed: Governed) -> None:
    governed.put(
        allow("lake.db.people.*", groups=["staff"]),
        allow("lake.db.people.*", users=["bob"]),
        mask("lake.db.people.ssn", "MASK_NULL", users=["ann"]),
        mask("lake.db.people.dept", "MASK_HASH", users=["ann"]),
        row_filter("lake.db.people", "dept = 'x'", users=["ann"]),
    )
    seen = governed.people(ANN).read()
    assert seen["id"].to_pylist() == [1, 3]
    assert seen["ssn"].to_pylist() == [None, None]
    assert all(len(each) == 64 for each in seen["dept"].to_pylist())
    assert governed.people(BOB).read().equals(ROWS)


def test_two_principals_alternate(governed: Governed) -> None:
    governed.put(
        allow("lake.db.people.*", users=["ann", "bob"]), row_filter("lake.db.people", "id > 1", users=["ann"])
    )
    ann, bob = governed.people(ANN), governed.people(BOB)
    for _ in range(2):
        assert ann.read()["id"].to_pylist() == [2, 3]
        assert bob.read()["id"].to_pylist() == [1, 2, 3]


def test_a_refusal_names_everything_and_where_to_ask(governed: Governed) -> None:
    governed.put(allow("lake.db.people.*", users=["ann"]), deny("lake.db.people.salary|ssn", users=["ann"]))
    with pytest.raises(AccessDeniedError) as refused:
        governed.people().read()
    assert refused.value.apply_for == (
        "select on column db.people.salary in service paimon",
        "select on column db.people.ssn in service paimon",
        "ask at the data office",
    )
    assert governed.people().read(columns=["id", "dept"]).num_columns == 2


def test_a_filter_may_not_ask_about_a_denied_column(governed: Governed) -> None:
    from lockgate.pushdown import col

    governed.put(allow("lake.db.people.*", users=["ann"]), deny("lake.db.people.salary", users=["ann"]))
    with pytest.raises(AccessDeniedError, match="salary"):
        governed.people().read(columns=["id"], predicate=col("salary") > 15.0)


def test_nothing_is_allowed_without_a_policy(governed: Governed) -> None:
    with pytest.raises(AccessDeniedError):
        governed.people().read()
    with pytest.raises(AccessDeniedError, match="create on database other"):
        governed.catalog().create_namespace("other")
    with pytest.raises(AccessDeniedError, match=r"drop on table db\.people"):
        governed.catalog().drop_table("db.people")
    assert [each.allowed for each in governed.records] == [False] * len(governed.records)


def test_rows_are_not_deleted_by_those_who_do_not_see_all(governed: Governed) -> None:
    everything = allow("lake.db.people.*", "all", users=["ann"])
    table = allow("lake.db.people", "all", users=["ann"])
    for hidden in (
        row_filter("lake.db.people", "dept = 'x'", users=["ann"]),
        mask("lake.db.people.ssn", "MASK_SHOW_LAST_4", users=["ann"]),
    ):
        governed.put(everything, table, hidden)
        with pytest.raises(AccessDeniedError, match="without row filter and masks"):
            governed.people().overwrite(ROWS)
        assert governed.people(Principal("bob")).latest_snapshot().id == 1
    governed.put(everything, table)
    governed.people().overwrite(ROWS)


def test_changes_need_access_to_the_whole_table(governed: Governed) -> None:
    everything = allow("lake.db.people.*", "all", users=["ann"])
    governed.put(everything)
    governed.people().append(ROWS.slice(0, 1))
    governed.put(everything, deny("lake.db.people.salary", "insert", users=["ann"]))
    with pytest.raises(AccessDeniedError, match="insert on table"):
        governed.people().append(ROWS.slice(0, 1))


def test_policies_that_change_are_used_at_once(governed: Governed) -> None:
    governed.put(allow("lake.db.people.*", users=["ann"]))
    assert governed.people().read().num_rows == 3
    governed.put()
    with pytest.raises(AccessDeniedError):
        governed.people().read()


def test_policies_that_cannot_be_used_allow_nothing(governed: Governed, tmp_path: Path) -> None:
    governed.put(allow("lake.db.people.*", users=["ann"]))
    assert governed.people().read().num_rows == 3
    (tmp_path / "policies.json").write_text('{"policies": [')
    with pytest.raises(PluginError, match="policies cannot be read"):
        governed.people().read()


@pytest.mark.parametrize("kind", ["CUSTOM", "MASK_SHOW_LAST_4"])
def test_a_mask_that_cannot_be_applied_refuses(governed: Governed, kind: str) -> None:
    governed.put(
        allow("lake.db.people.*", users=["ann"]),
        mask("lake.db.people.ssn", kind, value="{col}", users=["ann"]),
    )
    with pytest.raises(AccessDeniedError, match=kind):
        governed.people().read()


def test_a_row_filter_that_cannot_be_applied_refuses_and_is_not_shown(governed: Governed) -> None:
    said = row_filter("lake.db.people", "exists (select 1 from secret where who = 'eve')", users=["ann"])
    governed.put(allow("lake.db.people.*", users=["ann"]), said)
    with pytest.raises(AccessDeniedError, match=f"not that of policy {said['id']}") as refused:
        governed.people().read()
    assert "eve" not in str(refused.value)


def test_tables_of_another_warehouse_are_no_matter(governed: Governed, tmp_path: Path) -> None:
    other = Catalog(tmp_path / "warehouse2", principal=ANN)
    other.create_namespace("db")
    other.create_table("db.t", Schema.from_arrow(ROWS.schema)).append(ROWS)
    assert other.load_table("db.t").read().num_rows == 3


def test_decisions_leave_records(governed: Governed) -> None:
    said = allow("lake.db.people.*", users=["ann"])
    governed.put(said)
    governed.people().read(columns=["id"])
    (record,) = governed.records
    assert (record.user, record.access, record.resource) == ("ann", "select", "lake/db/people/id")
    assert (record.policy, record.allowed, record.kind) == (said["id"], True, "column")


def test_groups_come_from_rangers_users(governed: Governed, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "policies.json").write_text(json.dumps(service()))
    (folder / "users.json").write_text(json.dumps({"userGroupMapping": {"ann": ["staff"]}}))
    authorizer = RangerAuthorizer(PolicyFiles(folder))
    assert authorizer.lockgate_principal(Caller("ann")) == Principal("ann", frozenset({"staff"}))
    assert authorizer.lockgate_principal(Caller("eve")) is None


DATA = pa.table(
    {
        "n": pa.array([1, 2, None], pa.int32()),
        "s": ["a'b", "bc", None],
        "d": pa.array([datetime.date(2026, 1, 1), datetime.date(2026, 5, 1), None]),
        "m": pa.array([Decimal("1.50"), Decimal("2.50"), None], pa.decimal128(9, 2)),
    }
)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("n = 1", [1]),
        ("n <> 1 AND s IS NOT NULL", [2]),
        ("s = 'a''b' or s = 'zz'", [1]),
        (r"s = 'a\'b'", [1]),
        ("s LIKE 'b%'", [2]),
        ("s like '%b'", [1]),
        ("`n` in (2, 3)", [2]),
        ("NOT (n IN (2, 3))", [1]),
        ("n between 2 and 9", [2]),
        ("d >= DATE '2026-04-01'", [2]),
        ("n = -1", []),
        ("n IS NULL", [None]),
        ("1 = 0", []),
        ("1 = 1", [1, 2, None]),
        ("m > 2.25", [2]),
    ],
)
def test_row_filters_are_sql(text: str, rows: list[int | None]) -> None:
    assert filter_table(DATA, parsed(text))["n"].to_pylist() == rows


@pytest.mark.parametrize(
    "text",
    [
        "",
        "n =",
        "n = 1 1",
        "f(n) = 1",
        "n = m",
        "s LIKE s",
        "n = 1; drop",
        's = "a"',
        "n IN (SELECT 1)",
        "(n = 1",
    ],
)
def test_other_row_filters_are_refused(text: str) -> None:
    with pytest.raises(PolicyError):
        parsed(text)


def test_a_table_in_the_making_has_the_policies_of_its_own_name(governed: Governed) -> None:
    """As CREATE TABLE ... AS SELECT makes one: under a name that no policy can know."""
    mine, staged = Identifier("db", "mine"), Identifier("db", "mine").staged()
    catalog = governed.catalog(ANN)
    with pytest.raises(AccessDeniedError, match=r"CREATE on table db\.mine is denied to user 'ann'"):
        catalog.create_table(staged, Schema.from_arrow(ROWS.schema))
    governed.put(allow("lake.db.mine", "create", users=["ann"]))
    catalog.create_table(staged, Schema.from_arrow(ROWS.schema))
    with pytest.raises(AccessDeniedError, match=r"INSERT on table db\.mine"):
        catalog.load_table(staged).append(ROWS)
    governed.put(allow("lake.db.mine", "create", "insert", users=["ann"]))
    catalog.load_table(staged).append(ROWS)
    with pytest.raises(AccessDeniedError, match=r"ALTER on table db\.mine"):
        catalog.rename_table(staged, Identifier("db", "other"))
    with pytest.raises(AccessDeniedError, match="ALTER on table"):  # bob made none of it
        governed.catalog(BOB).rename_table(staged, Identifier("db", "taken"))
    catalog.rename_table(staged, mine)
    with pytest.raises(AccessDeniedError, match=r"DROP on table db\.mine"):
        catalog.drop_table(mine)
    undone = mine.staged()
    catalog.create_table(undone, Schema.from_arrow(ROWS.schema))
    with pytest.raises(AccessDeniedError, match=r"CREATE on table db\.mine"):
        governed.catalog(BOB).drop_table(undone)
    catalog.drop_table(undone)


def test_a_table_in_the_making_shows_nothing_that_its_own_name_does_not(governed: Governed) -> None:
    governed.put(allow("lake.db.*.*", users=["ann"]), deny("lake.db.mine.*", users=["ann"]))
    staged = Identifier("db", "mine").staged()
    plugins().unregister("governance-of-a-test")
    governed.catalog().create_table(staged, Schema.from_arrow(ROWS.schema)).append(ROWS)
    plugins().register(governed.authorizer, "governance-of-a-test")
    with pytest.raises(AccessDeniedError, match=r"SELECT on table db\.mine"):
        governed.catalog(ANN).load_table(staged).read()

"""What a plugin decides holds for reads, writes, DDL and procedures in Python."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate import procedures
from lockgate.errors import AccessDeniedError
from lockgate.framework.access import AccessRequest, Action, Decision, Mask, Principal
from lockgate.framework.plugins import acting_as, hookimpl, plugins
from lockgate.framework.store import Catalog
from lockgate.framework.store.ddl.schema_changes import SetOption
from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.schema.schema import Schema
from lockgate.framework.store.tables.table import Table
from lockgate.procedures import ProcedureContext
from lockgate.pushdown import Aggregate, Function, Predicate, SortKey, col

SCHEMA = pa.schema([("id", pa.int64()), ("land", pa.string()), ("pay", pa.int64()), ("mail", pa.string())])
ROWS = pa.table(
    {
        "id": [1, 2, 3, 4],
        "land": ["CH", "DE", "CH", "FR"],
        "pay": [90, 10, 50, 70],
        "mail": ["a@x.ch", "b@x.de", "c@x.ch", "d@x.fr"],
    },
    schema=SCHEMA,
)
Decide = Callable[[AccessRequest], Decision | None]


@pytest.fixture
def decide() -> Iterator[Callable[[Decide], list[AccessRequest]]]:
    """Lets a function decide about access for one test; returns the list of what it is asked."""
    asked: list[AccessRequest] = []

    def start(function: Decide) -> list[AccessRequest]:
        @hookimpl
        def lockgate_authorize(request: AccessRequest) -> Decision | None:
            asked.append(request)
            return function(request)

        plugins().register(types.SimpleNamespace(lockgate_authorize=lockgate_authorize), "decides")
        return asked

    yield start
    plugins().unregister("decides")


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """A warehouse with a database `hr`."""
    made = Catalog(str(tmp_path / "w"))
    made.create_namespace("hr")
    return made


@pytest.fixture(
    params=[{}, {"primary_keys": ["id"], "options": {"bucket": "2"}}, {"partition_keys": ["land"]}]
)
def people(catalog: Catalog, request: pytest.FixtureRequest) -> Table:
    """A table with four rows: without keys, with a primary key, with partitions."""
    table = catalog.create_table("hr.people", Schema.from_arrow(SCHEMA, **request.param))
    table.append(ROWS)
    return table


def restricted(**decision: object) -> Decide:
    return lambda request: Decision(**decision) if request.action is Action.SELECT else None  # type: ignore[arg-type]  # keywords of several types


def ids(rows: pa.Table) -> list[int]:
    return sorted(rows["id"].to_pylist())


# --- reads ---------------------------------------------------------------------------------------


def test_a_denied_read_says_what_to_apply_for(people: Table, decide: Callable[..., object]) -> None:
    decide(lambda request: Decision.denied("role hr") if "pay" in (request.columns or ()) else None)
    assert ids(people.read(columns=["id"])) == [1, 2, 3, 4]
    reads: list[Callable[[], object]] = [
        lambda: people.read(),
        lambda: people.read(columns=["pay"]),
        lambda: people.read(columns=["id"], predicate=col("pay") > 60),
        lambda: people.scan(columns=["id"], order=[SortKey(("pay",))], limit=1),
        lambda: list(people.read_batches(columns=["pay"])),
        lambda: people.aggregate([Aggregate(Function.MAX, ("pay",))]),
        lambda: list(people.changes(0, 1)),
        lambda: list(people.changes(0, 1, columns=["pay"])),
    ]
    for read in reads:
        with pytest.raises(AccessDeniedError) as refused:
            read()
        assert refused.value.apply_for == ("role hr",)


def test_the_plugin_sees_all_that_is_read_and_who_reads(
    people: Table, decide: Callable[[Decide], list[AccessRequest]]
) -> None:
    asked = decide(lambda request: None)
    with acting_as(Principal("ada")):
        people.read(columns=["id"], predicate=col("land") == "CH")
    people.scan(ReadRequest(columns=("mail",), principal=Principal("bob")))
    (ada, bob) = asked
    assert (ada.principal.user, ada.action, ada.columns) == ("ada", Action.SELECT, {"id", "land"})
    assert (ada.target.name, ada.target.location) == ("hr.people", people.location)
    assert (bob.principal.user, bob.columns) == ("bob", {"mail"})


def test_a_row_filter_holds_for_every_read(people: Table, decide: Callable[..., object]) -> None:
    decide(restricted(row_filter=col("land") == "CH"))
    assert ids(people.read()) == [1, 3]
    assert ids(people.read(columns=["id"])) == [1, 3]
    assert ids(people.read(predicate=col("pay") > 60)) == [1]
    assert people.read(columns=["id"], limit=3).num_rows == 2
    assert sum(batch.num_rows for batch in people.read_batches(columns=[])) == 2
    counted = people.aggregate([Aggregate(Function.COUNT)])
    assert counted.rows is None or counted.rows.column(0).to_pylist() == [2]
    assert "CH" not in str(people.scan().report)


def test_masks_take_the_place_of_values(people: Table, decide: Callable[..., object]) -> None:
    decide(restricted(masks={"pay": Mask("nullify"), "mail": Mask("redact")}))
    rows = people.read()
    assert set(rows["pay"].to_pylist()) == {None}
    assert sorted(rows["mail"].to_pylist()) == ["x.x.xx"] * 4
    assert rows.schema.field("pay").metadata[b"lockgate.masked"] == b"nullify"
    assert next(people.read_batches(columns=["pay"])).column(0).null_count


@pytest.mark.parametrize(
    ("predicate", "found"),
    [(col("pay") > 60, 0), (col("mail") == "a@x.ch", 0), (col("mail") == "x.x.xx", 4), (col("pay") == 90, 0)],
)
def test_a_query_sees_masks_where_it_filters_too(
    people: Table, decide: Callable[..., object], predicate: Predicate, found: int
) -> None:
    decide(restricted(masks={"pay": Mask("nullify"), "mail": Mask("redact")}))
    assert people.read(columns=["id"], predicate=predicate).num_rows == found
    limited = people.read(columns=["id"], predicate=predicate, limit=2)
    assert limited.num_rows == min(found, 2)


def test_no_file_is_left_out_by_what_is_masked(people: Table, decide: Callable[..., object]) -> None:
    before = len(people.scan().splits)
    decide(restricted(masks={"pay": Mask("nullify")}))
    assert len(people.scan(col("pay") > 1000).splits) == before
    assert len(people.scan(order=[SortKey(("pay",))], limit=1).splits) == before
    answer = people.aggregate([Aggregate(Function.MAX, ("pay",))])
    assert answer.rows is None
    assert "masked" in str(answer.push_down.remaining)


@pytest.mark.parametrize("decision", [{"row_filter": col("id") == 1}, {"masks": {"pay": Mask("nullify")}}])
def test_nothing_is_written_again_from_what_is_hidden_in_part(
    people: Table, decide: Callable[..., object], decision: dict[str, object]
) -> None:
    decide(restricted(**decision))
    with pytest.raises(AccessDeniedError, match="without row filter and masks"):
        people.read(strict=True)
    with pytest.raises(AccessDeniedError, match="without row filter and masks"):
        people.changes(0, 1)
    if people.schema.primary_keys:
        with pytest.raises(AccessDeniedError, match="without row filter and masks"):
            people.delete(col("pay") > 0)
        with pytest.raises(AccessDeniedError, match=r"INSERT on table hr.people would reach rows and values"):
            people.append(ROWS)
    else:
        people.append(ROWS)


@pytest.mark.parametrize(
    "options", [{"sequence.field": "pay"}, {"fields.pay.sequence-group": "mail"}, {"rowkind.field": "mail"}]
)
def test_an_upsert_does_not_compare_with_a_denied_column(
    catalog: Catalog, decide: Callable[..., object], options: dict[str, str]
) -> None:
    """Whether the new row wins shows in its other columns."""
    engine = {"merge-engine": "partial-update"} if "fields.pay.sequence-group" in options else {}
    schema = Schema.from_arrow(SCHEMA, primary_keys=["id"], options={"bucket": "1", **engine, **options})
    table = catalog.create_table("hr.ordered", schema)
    denied = "mail" if "rowkind.field" in options else "pay"
    decide(
        lambda request: (
            Decision.denied("pay, really")
            if request.action is Action.SELECT and denied in (request.columns or ())
            else None
        )
    )
    with pytest.raises(AccessDeniedError, match=r"INSERT on table hr.ordered .*pay, really"):
        table.append(ROWS)


# --- writes, DDL, procedures ---------------------------------------------------------------------


def test_every_change_is_asked_for(
    catalog: Catalog, people: Table, decide: Callable[[Decide], list[AccessRequest]]
) -> None:
    asked = decide(lambda request: None)
    changes: list[tuple[Callable[[], object], set[tuple[str, str]]]] = [
        (lambda: people.append(ROWS), {("INSERT", "hr.people")}),
        (lambda: people.overwrite(ROWS), {("INSERT", "hr.people"), ("DELETE", "hr.people")}),
        (lambda: people.create_tag("t"), {("ALTER", "hr.people")}),
        (lambda: people.delete_tag("t"), {("ALTER", "hr.people")}),
        (lambda: people.rollback(1), {("ALTER", "hr.people")}),
        (lambda: catalog.alter_table("hr.people", [SetOption("comment", "x")]), {("ALTER", "hr.people")}),
        (lambda: catalog.create_table("hr.b", Schema.from_arrow(SCHEMA)), {("CREATE", "hr.b")}),
        (lambda: catalog.rename_table("hr.b", "hr.c"), {("ALTER", "hr.b"), ("CREATE", "hr.c")}),
        (lambda: catalog.drop_table("hr.c"), {("DROP", "hr.c")}),
        (lambda: catalog.create_namespace("x"), {("CREATE", "x")}),
        (lambda: catalog.drop_namespace("x"), {("DROP", "x")}),
        (lambda: procedures.call(ProcedureContext(catalog), "compact", "hr.people"), {("CALL", "compact")}),
    ]
    for change, wanted in changes:
        asked.clear()
        change()
        found = {(request.action.value, request.target.name) for request in asked}
        assert wanted <= found, wanted


def test_a_denied_change_changes_nothing(
    catalog: Catalog, people: Table, decide: Callable[..., object]
) -> None:
    before = {path.name for path in Path(people.location).rglob("*")}
    decide(lambda request: None if request.action is Action.SELECT else Decision.denied("ownership"))
    changes: list[Callable[[], object]] = [
        lambda: people.append(ROWS),
        lambda: people.overwrite(ROWS),
        lambda: people.commit([], kind="OVERWRITE", overwrite={}),
        lambda: people.create_tag("t"),
        lambda: people.rollback(1),
        lambda: people.create_branch("b"),
        lambda: catalog.alter_table("hr.people", [SetOption("comment", "x")]),
        lambda: catalog.replace_table("hr.people", Schema.from_arrow(SCHEMA)),
        lambda: catalog.rename_table("hr.people", "hr.c"),
        lambda: catalog.drop_table("hr.people"),
        lambda: catalog.drop_namespace("hr", cascade=True),
        lambda: procedures.call(ProcedureContext(catalog), "compact", "hr.people"),
    ]
    for change in changes:
        with pytest.raises(AccessDeniedError, match="ownership"):
            change()
    assert {path.name for path in Path(people.location).rglob("*")} == before
    assert ids(people.read(columns=["id"])) == [1, 2, 3, 4]

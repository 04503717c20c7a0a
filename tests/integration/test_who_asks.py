"""Who asks: each question of the connector names a user, and what the statement will do."""

from __future__ import annotations

import getpass
import re
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from lockgate.errors import AccessDeniedError
from lockgate.framework.access import AccessRequest, Action, Caller, Decision, Mask, Principal
from lockgate.framework.plugins import hookimpl, plugins
from lockgate.framework.spark.bridge import dispatcher
from lockgate.framework.spark.context.operation_context import OperationContext
from lockgate.framework.types import BIGINT, DataField
from lockgate.lookup import lookup_join
from lockgate.pushdown import col

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

    Named = Callable[[str], str]

ACTS = "spark.lockgate.acts-for-others"


@pytest.fixture(scope="module", autouse=True)
def without_added_catalogs(spark: SparkSession) -> None:
    """Forget catalogs that other files set by conf: where somebody decides, such a session is refused."""
    for name in spark.conf.getAll:
        if re.match(r"spark\.sql\.catalog\.(?!lake\b|public\b|folders\b|spark_catalog\b)", name):
            spark.conf.unset(name)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, frozenset[str]]]:
    """The operation, the user and the privileges of each question."""
    seen = []

    def seeing(name: str, handler: Any) -> Any:
        def handle(context: OperationContext, request: dict[str, Any]) -> object:
            seen.append((name, context.principal.user, frozenset(request.get("privileges", ()))))
            return handler(context, request)

        return handle

    for name, handler in list(dispatcher._OWN.items()):
        monkeypatch.setitem(dispatcher._OWN, name, seeing(name, handler))
    return seen


@pytest.fixture
def started_to_act(spark: SparkSession) -> Iterator[None]:
    """Has the application look as if it had been started to act for others."""
    conf: Any = spark.sparkContext._jsc.sc().conf()
    conf.set(ACTS, "true")
    yield
    conf.remove(ACTS)


def test_the_user_of_the_session_asks(spark: SparkSession, table: Named, asked: list[Any]) -> None:
    user = spark.sql("SELECT current_user()").collect()[0][0]
    spark.sql(f"CREATE TABLE {table('t')} (id INT)")
    spark.table(table("t")).collect()
    assert {"table.create", "table.load"} <= {operation for operation, _, _ in asked}
    assert {each for _, each, _ in asked} == {user}


def test_what_a_statement_will_do_comes_with_it(spark: SparkSession, table: Named, asked: list[Any]) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id INT, v INT) TBLPROPERTIES ('primary-key'='id', 'bucket'='1')")

    def privileges(operation: str, statement: str) -> frozenset[str]:
        asked.clear()
        spark.sql(statement)
        return frozenset().union(*(found for what, _, found in asked if what == operation))

    assert privileges("table.load", f"SELECT * FROM {name}") == set()
    assert privileges("write.begin", f"INSERT INTO {name} VALUES (1, 1), (2, 2)") == {"INSERT"}
    assert privileges("write.begin", f"UPDATE {name} SET v = 3 WHERE id = 1") == {"UPDATE"}
    assert privileges("write.begin", f"DELETE FROM {name} WHERE v = 3") == {"DELETE"}
    assert privileges(
        "write.begin",
        f"MERGE INTO {name} t USING (SELECT 2 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 9",
    ) == {"UPDATE"}


def test_a_session_acts_for_a_user(
    spark: SparkSession, table: Named, asked: list[Any], started_to_act: None
) -> None:
    spark.sql(f"CREATE TABLE {table('t')} (id INT)")
    asked.clear()
    session = spark.newSession()
    session.conf.set("spark.lockgate.user", "ada")
    session.table(table("t")).collect()
    assert {user for _, user, _ in asked} == {"ada"}
    for change in (
        lambda: session.sql("SET spark.lockgate.user=bob"),
        lambda: session.sql("RESET spark.lockgate.user"),
    ):
        change()
        with pytest.raises(AnalysisException, match="already acts for another user"):
            session.table(table("t")).collect()
    session.sql("SET spark.lockgate.user=ada")
    assert session.table(table("t")).count() == 0


def test_an_explanation_is_asked_for_by_its_own_session(
    spark: SparkSession, lake: Lake, table: Named, asked: list[Any], started_to_act: None
) -> None:
    spark.sql(f"CREATE TABLE {table('t')} (id INT)")
    other = spark.newSession()
    other.conf.set("spark.lockgate.user", "ada")
    sessions = spark._jvm.org.apache.spark.sql.SparkSession
    sessions.setActiveSession(other._jsparkSession)
    try:
        asked.clear()
        lake.explain_pushdown(f"SELECT * FROM {table('t')} WHERE id = 1")
        lake.check(f"SELECT * FROM {table('t')}", user="bob")
    finally:
        sessions.setActiveSession(spark._jsparkSession)
    assert {user for _, user, _ in asked} == {getpass.getuser()}


def test_a_session_names_no_user_unless_the_application_was_started_so(
    spark: SparkSession, table: Named
) -> None:
    session = spark.newSession()
    session.conf.set("spark.lockgate.user", "ada")
    with pytest.raises(AnalysisException, match=f"{ACTS}=true"):
        session.sql(f"CREATE TABLE {table('t')} (id INT)")


def test_a_plugin_makes_the_identity(spark: SparkSession, table: Named, monkeypatch: Any) -> None:
    callers, seen = [], []

    @hookimpl
    def lockgate_principal(caller: Caller) -> Principal:
        callers.append(caller)
        return Principal(caller.user, frozenset({"staff"}))

    def listed(context: OperationContext, request: dict[str, Any]) -> list[str]:
        seen.append(context.principal)
        return []

    monkeypatch.setitem(dispatcher._OWN, "table.list", listed)
    plugins().register(types.SimpleNamespace(lockgate_principal=lockgate_principal), "identities")
    try:
        spark.sql(f"SHOW TABLES IN {table('t').rpartition('.')[0]}").collect()
    finally:
        plugins().unregister("identities")
    assert {(caller.door, bool(caller.session)) for caller in callers} == {("spark", True)}
    assert {each.groups for each in seen} == {frozenset({"staff"})}


def test_what_a_plugin_denies_is_denied_to_spark(spark: SparkSession, table: Named) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id INT, pay INT) TBLPROPERTIES ('primary-key'='id', 'bucket'='1')")
    spark.sql(f"INSERT INTO {name} VALUES (1, 10), (2, 20)")
    rights: dict[Action, Decision] = {}

    @hookimpl
    def lockgate_authorize(request: AccessRequest) -> Decision | None:
        return rights.get(request.action) if request.target.name.endswith(".t") else None

    plugins().register(types.SimpleNamespace(lockgate_authorize=lockgate_authorize), "decides")
    try:
        for action, statement in (
            (Action.SELECT, f"SELECT id FROM {name}"),
            (Action.SELECT, f"SELECT count(*) FROM {name} WHERE id > 1"),
            (Action.INSERT, f"INSERT INTO {name} VALUES (3, 30)"),
            (Action.UPDATE, f"UPDATE {name} SET pay = 0 WHERE id = 1"),
            (Action.DELETE, f"DELETE FROM {name} WHERE id = 1"),
            (Action.DELETE, f"TRUNCATE TABLE {name}"),
            (Action.ALTER, f"ALTER TABLE {name} SET TBLPROPERTIES ('comment'='x')"),
            (Action.DROP, f"DROP TABLE {name}"),
        ):
            rights.clear()
            rights[action] = Decision.denied("role hr")
            with pytest.raises(AnalysisException, match=f"{action} on table .*apply for: role hr"):
                spark.sql(statement).collect()
        for hidden, seen in (
            (Decision(row_filter=col("id") == 1), [(1, 10)]),
            (Decision(masks={"pay": Mask("nullify")}), [(1, None), (2, None)]),
        ):
            rights.clear()
            rights[Action.SELECT] = hidden
            assert sorted(map(tuple, spark.sql(f"SELECT * FROM {name}").collect())) == seen
            with pytest.raises(AnalysisException, match="without row filter and masks"):
                spark.sql(f"DELETE FROM {name} WHERE id = 2")
    finally:
        plugins().unregister("decides")
    assert sorted(map(tuple, spark.table(name).collect())) == [(1, 10), (2, 20)]


def test_a_lookup_join_asks_for_the_one_who_joins(
    spark: SparkSession,
    table: Named,
    options: dict[str, str],
    started_to_act: None,
    lookups_end: None,
) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, pay INT, city STRING)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 10, 'Bern'), (2, 20, 'Chur')")
    asked = []

    @hookimpl
    def lockgate_authorize(request: AccessRequest) -> Decision | None:
        if request.principal.user != "ada" or request.columns is None:
            return None
        asked.append(request.columns)
        return Decision.denied("role hr") if "pay" in request.columns else None

    session = spark.newSession()
    session.conf.set("spark.lockgate.user", "ada")
    plugins().register(types.SimpleNamespace(lockgate_authorize=lockgate_authorize), "decides")
    try:
        stream = session.range(1, 3)
        found = lookup_join(stream, name, "id", select=["city"], options=options)
        assert sorted(row.city for row in found.collect()) == ["Bern", "Chur"]
        assert frozenset({"id", "city"}) in asked
        with pytest.raises(AccessDeniedError, match="apply for: role hr"):
            lookup_join(stream, name, "id", select=["pay"], options=options).collect()
        assert lookup_join(spark.range(1, 3), name, "id", select=["pay"], options=options).count() == 2
    finally:
        plugins().unregister("decides")


def test_a_plugins_system_table_asks(spark: SparkSession, table: Named) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id INT, pay INT)")
    shown_as = name.replace(".t", ".`t$numbers`")
    rights: list[Decision] = []

    class Numbers:
        def schema(self, context: object, table: object) -> list[DataField]:
            return [DataField(0, "number", BIGINT)]

        def rows(self, *_: object) -> pa.Table:
            return pa.table({"number": [42]})

    @hookimpl
    def lockgate_system_tables() -> dict[str, Any]:
        return {"numbers": Numbers()}

    @hookimpl
    def lockgate_authorize(request: AccessRequest) -> Decision | None:
        return rights[-1] if rights else None

    plugin = types.SimpleNamespace(
        lockgate_system_tables=lockgate_system_tables, lockgate_authorize=lockgate_authorize
    )
    plugins().register(plugin, "numbers")
    try:
        shown = spark.table(shown_as)
        assert [row.number for row in shown.collect()] == [42]
        rights.append(Decision.denied("role hr"))
        with pytest.raises(AnalysisException, match="apply for: role hr"):
            spark.table(shown_as).collect()
        rights.append(Decision(masks={"pay": Mask("nullify")}))
        with pytest.raises(AnalysisException, match="without row filter and masks"):
            spark.table(shown_as).collect()
    finally:
        plugins().unregister("numbers")

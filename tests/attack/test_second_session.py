"""A second session of the same application: it gets no key by names and handles that it can see or guess."""

from __future__ import annotations

import json
import re
import uuid
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, PySparkException

from lockgate import lookup

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]
SECRET = "top secret"


@pytest.fixture
def secrets(spark: SparkSession, table: Named) -> str:
    """A table with an encrypted column."""
    name = table("people")
    spark.sql(f"CREATE TABLE {name} (id INT, ssn STRING) TBLPROPERTIES ('orc.encrypt' = 'pii:ssn')")
    spark.sql(f"INSERT INTO {name} VALUES (1, '{SECRET}')")
    assert spark.table(name).collect() == [(1, SECRET)]
    return name


def seen(session: SparkSession, name: str) -> str:
    """What a session makes of the encrypted value: the mask, or why it cannot read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return str(session.sql(f"SELECT ssn FROM {name}").collect())
    except PySparkException as error:
        return f"refused: {error}"


def mounted(lake: Lake, keys: str | None) -> tuple[SparkSession, str]:
    """A new session with a catalog of its own over the same warehouse, set by SQL as a user of it may."""
    session = lake.spark.newSession()
    name = f"thief_{uuid.uuid4().hex[:8]}"
    session.sql(f"SET spark.sql.catalog.{name}=io.lockgate.spark.LockgateCatalog")
    session.sql(f"SET spark.sql.catalog.{name}.warehouse={lake.catalog.warehouse}")
    if keys is not None:
        session.sql(f"SET spark.sql.catalog.{name}.keys={keys}")
    return session, name


def test_what_another_session_shows_in_its_confs_opens_nothing(lake: Lake, secrets: str) -> None:
    shown = [
        row.value
        for row in lake.spark.sql("SET").collect()
        if row.key.startswith("spark.sql.catalog.") and row.key.endswith(".keys")
    ]
    handles = [value for value in shown if value.startswith("session:")]
    for handle in handles:
        session, name = mounted(lake, handle)
        assert SECRET not in seen(session, secrets.replace("lake.", f"{name}.", 1))


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_a_guessed_handle_opens_nothing(lake: Lake, secrets: str, number: int) -> None:
    for handle in (f"session:keys-{number}", f"session:{number}", f"keys-{number}", f"scope:keys-{number}"):
        session, name = mounted(lake, handle)
        assert SECRET not in seen(session, secrets.replace("lake.", f"{name}.", 1))


def test_a_catalog_without_keys_sees_the_mask(lake: Lake, secrets: str) -> None:
    session, name = mounted(lake, None)
    assert "ssn=None" in seen(session, secrets.replace("lake.", f"{name}.", 1))
    # The session that has the key still reads.
    assert SECRET in seen(lake.spark, secrets)


def test_no_plan_conf_or_error_shows_a_handle_that_opens(lake: Lake, secrets: str) -> None:
    frame = lake.spark.table(secrets)
    text = frame._jdf.queryExecution().toString()
    assert "session:" not in text
    assert "keys-" not in text


# --- caches of lookups -----------------------------------------------------------------------------


@pytest.fixture
def cached(lake: Lake, table: Named, options: dict[str, str], lookups_end: None) -> dict[str, Any]:
    """What a join of the usual session tells its tasks about its cache, and the batch's snapshot."""
    name = table("dim")
    lake.spark.sql(
        f"CREATE TABLE {name} (id BIGINT, v STRING) TBLPROPERTIES ('primary-key'='id', 'bucket'='1')"
    )
    lake.spark.sql(f"INSERT INTO {name} VALUES (1, '{SECRET}')")
    joined = lookup.lookup_join(lake.spark.range(3), name, on="id", options=options)
    assert [row.v for row in joined.where("id = 1").collect()] == [SECRET]
    assert re.search(r"lookup_[0-9a-f]{32}", joined._jdf.queryExecution().toString()) is None
    status = lookup.status(name)
    assert status.directory not in joined._jdf.queryExecution().toString()
    return {
        "snapshot": status.served_snapshot,
        "how": json.dumps(
            {
                "location": status.directory,
                "everywhere": False,
                "wait_seconds": 0.2,
                "keys": ["int64"],
                "columns": ["text"],
                "answer": json.loads(lake.spark.table(name).select("v").schema.json()),
                "answered": [0],
            }
        ),
    }


ANSWER = "{snapshot}L, 0L, struct(1L)"


def test_no_statement_names_the_folder_of_a_cache(lake: Lake, cached: dict[str, Any]) -> None:
    stranger, catalog = mounted(lake, None)
    arguments = ANSWER.format(**cached)
    for session, name in ((stranger, catalog), (lake.spark, lake.name)):
        for given in (f"'{cached['how']}', {arguments}", arguments):
            with pytest.raises(AnalysisException, match="lookup"):
                session.sql(f"SELECT {name}.lookup({given})").collect()


def test_only_the_session_that_plans_a_join_finds_its_function(lake: Lake, cached: dict[str, Any]) -> None:
    stranger, catalog = mounted(lake, None)
    jvm: Any = lake.spark._jvm
    offers = jvm.io.lockgate.spark.lookup.OfferedLookups
    session: Any = lake.spark
    name = offers.offer(session._jsparkSession, cached["how"])
    arguments = ANSWER.format(**cached)
    assert lake.spark.sql(f"SELECT {lake.name}.{name}({arguments}).v AS v").collect() == [(SECRET,)]
    for thief in (f"{catalog}.{name}", f"{lake.name}.{name}"):
        with pytest.raises(AnalysisException, match="UNRESOLVED_ROUTINE"):
            stranger.sql(f"SELECT {thief}({arguments})").collect()
    planned = lake.spark.sql(f"SELECT {lake.name}.{name}({arguments}).v AS v")
    offers.withdraw(name)
    assert planned.collect() == [(SECRET,)]
    with pytest.raises(AnalysisException, match="UNRESOLVED_ROUTINE"):
        lake.spark.sql(f"SELECT {lake.name}.{name}({arguments})").collect()

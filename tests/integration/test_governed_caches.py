"""Caches of Spark and of lookups where users have different rights: none answers for another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from governed_world import World
from ranger_world import allow, deny, mask, row_filter

from lockgate.errors import AccessDeniedError
from lockgate.framework.access import MASKED
from lockgate.lookup import lookup_join
from lockgate.pushdown import col

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockgate import Lake

    Named = Callable[[str], str]

pytestmark = pytest.mark.usefixtures("lookups_end")


@pytest.mark.parametrize("table", ["`people$files`", "`people$audit_log`", "lookup"])
def test_a_cache_of_another_user_answers_nobody_else(
    world: World, people: str, options: dict[str, str], table: str
) -> None:
    """A view of the application keeps its plan, which is the one that the cache was filled by."""
    root = world.session("root")
    if table == "lookup":
        said = {**options, "lookup.strategy": "lookup"}
        whole = lookup_join(root.range(1, 4), people, on="id", select=["name"], options=said)
    else:
        whole = root.table(people.removesuffix("people") + table)
    whole.createOrReplaceGlobalTempView("whole")
    whole.cache()
    try:
        assert whole.count() > 0
        world.put(allow(f"{people}.*", users=["ann"]), row_filter(people, "dept = 'x'", users=["ann"]))
        with pytest.raises(
            Exception, match=r"without row filter and masks|planned with other keys or rights"
        ):
            world.sql("SELECT * FROM global_temp.whole")
        world.put()
        with pytest.raises(Exception, match="denied to user 'ann'"):
            world.sql("SELECT * FROM global_temp.whole")
        assert len(world.sql("SELECT * FROM global_temp.whole", "root")) == whole.count()
    finally:
        whole.unpersist()


# --- caches of lookups ---


def cached(world: World, user: str, people: str, options: dict[str, str], **more: Any) -> list[Any]:
    return sorted(map(tuple, joined(world, user, people, options, **more).collect()), key=repr)


def joined(world: World, user: str, people: str, options: dict[str, str], **more: Any) -> DataFrame:
    stream = world.session(user).range(1, 5)
    by_python = {**options, "lookup.strategy": "lookup", "lookup.in-jvm": "false"}
    return lookup_join(stream, people, on="id", options=by_python, **{"select": ["name", "dept"], **more})


def folders(options: dict[str, str]) -> int:
    return sum(1 for each in Path(options["lookup.cache-dir"]).iterdir() if (each / "LAYOUT.json").exists())


def test_users_of_equal_rights_share_a_cache_and_others_have_their_own(
    world: World, people: str, options: dict[str, str]
) -> None:
    everyone = ["ann", "bob", "cal"]
    world.put(
        allow(f"{people}.*", users=everyone),
        row_filter(people, "dept = 'x'", users=["ann", "bob"]),
        mask(f"{people}.name", "MASK_NULL", users=["cal"]),
    )
    whole = [(1, "ann", "x"), (2, "bob", "y"), (3, "cal", "x"), (4, "dan", "y")]
    some = [(1, "ann", "x"), (2, None, None), (3, "cal", "x"), (4, None, None)]
    masked = [(1, None, "x"), (2, None, "y"), (3, None, "x"), (4, None, "y")]
    for _ in range(2):
        assert cached(world, "root", people, options) == whole
        assert cached(world, "ann", people, options) == some
        assert cached(world, "bob", people, options) == some
        assert cached(world, "cal", people, options) == masked
    assert folders(options) == 3
    marks = [field.metadata.get(MASKED) for field in joined(world, "cal", people, options).schema]
    assert marks == [None, "nullify", None]
    # A condition sees the masks, as that of a query does.
    assert cached(world, "cal", people, options, where=col("name") == "ann", how="inner") == []


def test_a_cache_under_rights_follows_changes(
    lake: Lake, world: World, options: dict[str, str], shared_table: Named
) -> None:
    name = shared_table("followed")
    lake.sql(f"CREATE TABLE {name} (id BIGINT, v STRING, team STRING) TBLPROPERTIES ('primary-key'='id')")
    lake.sql(f"INSERT INTO {name} VALUES (1, 'a', 'x'), (2, 'b', 'y'), (3, 'c', 'x')")
    world.put(
        allow(f"{name}.*", users=["ann"]),
        row_filter(name, "team = 'x'", users=["ann"]),
        mask(f"{name}.v", "MASK", users=["ann"]),
    )
    said = {**options, "lookup.strategy": "lookup", "lookup.refresh.async": "false"}
    for expected in ([(1, "x"), (3, "x")], [(2, "X"), (3, "x"), (5, "x")]):
        stream = world.session("ann").sql("SELECT explode(array('x', 'y')) AS team")
        found = lookup_join(stream, name, on="team", select=["id", "v"], how="inner", options=said)
        assert sorted((row.id, row.v) for row in found.collect()) == expected
        lake.sql(f"INSERT INTO {name} VALUES (1, 'aa', 'y'), (2, 'B', 'x'), (5, 'e', 'x'), (6, 'f', 'y')")


@pytest.mark.long
def test_a_partial_cache_under_rights_is_one_of_the_permitted_rows(
    lake: Lake, world: World, options: dict[str, str], shared_table: Named
) -> None:
    """A user with a row filter, a mask and a denied column, against root on a table of what is permitted."""
    whole, permitted = shared_table("whole"), shared_table("permitted")
    for name in (whole, permitted):
        lake.sql(
            f"CREATE TABLE {name} (id BIGINT, v STRING, team STRING, pay INT) "
            "TBLPROPERTIES ('primary-key'='id', 'bucket'='2')"
        )
    world.put(
        allow(f"{whole}.*", users=["ann"]),
        deny(f"{whole}.pay", users=["ann"]),
        row_filter(whole, "team = 'x'", users=["ann"]),
        mask(f"{whole}.v", "MASK", users=["ann"]),
    )
    said = {
        **options,
        "lookup.strategy": "lookup",
        "lookup.cache": "partial",
        "lookup.refresh.async": "false",
    }

    def asked(user: str, name: str, **more: Any) -> list[Any]:
        stream = world.session(user).range(-1, 14)
        more = {"select": ["v", "team"], **more}
        return sorted(
            map(tuple, lookup_join(stream, name, on="id", options=said, **more).collect()), key=repr
        )

    # The third change takes rows out of the filter and brings others in, which were asked for before.
    for change in (
        "SELECT id, concat('Ab', id), if(id % 3 = 0, 'x', 'y') AS team, 1 FROM range(10)",
        "SELECT id, concat('Cd', id), 'x' AS team, 2 FROM range(8, 12)",
        "SELECT id, concat('Ef', id), if(id % 3 = 0, 'y', 'x') AS team, 3 FROM range(6)",
    ):
        lake.sql(f"INSERT INTO {whole} {change}")
        lake.sql(f"DELETE FROM {permitted} WHERE id IN (SELECT id FROM ({change}))")
        lake.sql(
            f"INSERT INTO {permitted} SELECT id, regexp_replace(regexp_replace(regexp_replace("
            f"v, '[A-Z]', 'X'), '[a-z]', 'x'), '[0-9]', '9'), team, pay FROM {whole} WHERE team = 'x'"
        )
        for _ in range(2):  # read, then known
            seen = asked("ann", whole)
            assert seen == asked("root", permitted)
            assert {row[2] for row in seen} == {None, "x"}
        assert asked("ann", whole, how="inner", where=col("v") == "Xx9") == asked(
            "root", permitted, how="inner", where=col("v") == "Xx9"
        )
        assert {row[2] for row in asked("root", whole)} == {None, "x", "y"}
    for wanted in ({"select": ["pay"]}, {"where": col("pay") > 0}):
        with pytest.raises(AccessDeniedError, match="pay"):
            asked("ann", whole, **wanted)
    served = {**said, "lookup.remote": "true"}
    with pytest.raises(Exception, match="does not know who asks"):
        lookup_join(world.session("ann").range(3), whole, on="id", select=["v"], options=served).collect()


def test_a_masked_key_finds_nothing_in_a_cache(world: World, people: str, options: dict[str, str]) -> None:
    world.put(allow(f"{people}.*", users=["ann"]), mask(f"{people}.id", "MASK_NULL", users=["ann"]))
    with pytest.raises(AccessDeniedError, match=r"finds rows by id.*lookup.strategy=spark"):
        cached(world, "ann", people, options)


def test_policies_that_change_end_a_lookup_that_was_planned(
    world: World, people: str, options: dict[str, str]
) -> None:
    world.put(allow(f"{people}.*", users=["ann"]))
    said = {**options, "lookup.strategy": "lookup"}
    seen = lookup_join(world.session("ann").range(1, 5), people, on="id", select=["name"], options=said)
    assert len(seen.collect()) == 4
    world.put(allow(f"{people}.*", users=["ann"]), row_filter(people, "dept = 'x'", users=["ann"]))
    with pytest.raises(Exception, match="the policies have changed"):
        seen.where("id > 0").collect()
    world.put()
    with pytest.raises(Exception, match="denied to user 'ann'"):
        seen.where("id > 0").collect()


@pytest.mark.parametrize("form", ["lookup", "spark"])
def test_a_stream_whose_rights_change_ends_by_name(
    world: World, people: str, options: dict[str, str], tmp_path: Path, form: str
) -> None:
    world.authorizer.governs_others = False  # who may read files is not the question
    world.put(allow(f"{people}.*", users=["ann"]), row_filter(people, "dept = 'x'", users=["ann"]))
    session, rows = world.session("ann"), tmp_path / "rows"
    session.range(1, 5).write.parquet(str(rows))
    stream = session.readStream.schema("id BIGINT").parquet(str(rows))
    joined = lookup_join(
        stream, people, on="id", select=["name"], options={**options, "lookup.strategy": form}
    )
    found: list[Any] = []
    query = joined.writeStream.foreachBatch(
        lambda batch, _: found.extend(map(tuple, batch.collect()))
    ).start()
    try:
        query.processAllAvailable()
        assert sorted(found) == [(1, "ann"), (2, None), (3, "cal"), (4, None)]
        world.put(allow(f"{people}.*", users=["ann"]), row_filter(people, "dept = 'y'", users=["ann"]))
        session.range(5, 6).write.mode("append").parquet(str(rows))
        with pytest.raises(Exception, match=r"policies have changed|policies that have changed"):
            query.processAllAvailable()
    finally:
        query.stop()

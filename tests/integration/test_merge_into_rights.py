"""`merge_into` under policies: it may do what the caller's MERGE may do, and shows no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException
from ranger_world import allow

if TYPE_CHECKING:
    from governed_world import World

    from lockgate import Lake


def test_the_rights_are_those_of_the_caller(lake: Lake, limited: World, people: str, database: str) -> None:
    target = f"{database}.t"
    lake.sql(
        f"CREATE TABLE lake.{target} (id BIGINT NOT NULL, ssn STRING) TBLPROPERTIES ('primary-key' = 'id')"
    )
    lake.sql(f"INSERT INTO lake.{target} VALUES (1, 'old')")
    limited.put(
        *limited.policies, allow(f"lake.{target}.*", users=["ann"]), allow("lake", "alter", users=["ann"])
    )
    call = (
        f"CALL lake.sys.merge_into('{target}', 't', '', '{people}', 't.id = people.id', "
        "matched_upsert_setting => 't.ssn = people.ssn', not_matched_insert_values => 'people.id, {value}')"
    )
    statement = (
        f"MERGE INTO lake.{target} t USING {people} AS people ON t.id = people.id "
        "WHEN MATCHED THEN UPDATE SET t.ssn = people.ssn WHEN NOT MATCHED THEN INSERT (id, ssn) "
        "VALUES (people.id, people.ssn)"
    )
    for text in (statement, call.format(value="people.ssn")):
        with pytest.raises(AnalysisException, match="apply for"):
            limited.sql(text)
    assert limited.sql(f"SELECT * FROM lake.{target}", "root") == [(1, "old")]
    rights = ("select", "update", "insert", "delete", "alter")
    limited.put(*limited.policies, *(allow(f"lake.{target}.*", each, users=["ann"]) for each in rights))
    outcomes = []
    for text in (statement, call.format(value="people.ssn"), call.format(value="people.salary")):
        try:
            limited.sql(text)
            outcomes.append("done")
        except AnalysisException as error:
            outcomes.append("salary" if "salary" in str(error) else str(error).partition("\n")[0])
    assert outcomes[0] == outcomes[1]
    assert outcomes[2] == "salary"
    shown = {ssn for _, ssn in limited.sql(f"SELECT * FROM lake.{target}", "root")}
    assert shown <= {"old", "xxx-xx-1111", "xxx-xx-3333"}

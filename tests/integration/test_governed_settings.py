"""No setting of a session changes what row filters and masks give, for any setting of the installed Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from governed_world import World
from ranger_world import allow, mask, row_filter

from lockgate.framework.spark.enforcement.session_settings import is_fenced

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

# Functions by families, each on a column of its own: what a policy may be made of.
MASKS = {
    "CAST(try_to_date({col}, 'yyyy-MM-dd') AS STRING)": "2024-1-1",
    "CAST(try_to_timestamp({col}, 'yyyy-MM-dd HH:mm') AS STRING)": "2024-3-1 5:00",
    "try_to_timestamp({col}, 'dd/MM/yy')": "01/02/24",
    "date_format(to_timestamp({col}), 'yyyy-MM-dd EEE')": "2024-03-10 02:30:00",
    "unix_timestamp({col}, 'yyyy-MM-dd')": "2024-01-01",
    "from_unixtime(length({col}), 'yyyy-MM-dd')": "abc",
    "CAST(try_cast({col} AS TIMESTAMP) AS STRING)": "2024-06-01 12:00:00",
    "hour(try_cast({col} AS TIMESTAMP))": "2024-06-01 12:00:00",
    "CAST(try_cast({col} AS DATE) AS STRING)": "1500-02-29",
    "date_trunc('DAY', try_cast({col} AS TIMESTAMP))": "2024-06-01 23:30:00",
    "try_cast({col} AS INT)": " 12 ",
    "try_cast({col} AS DOUBLE)": "1e400",
    "try_cast({col} AS BOOLEAN)": "t",
    "try_cast({col} AS DECIMAL(5, 2))": "12345.678",
    "CAST(try_cast({col} AS DECIMAL(38, 18)) * CAST(3.3 AS DECIMAL(38, 18)) AS STRING)": "1.2345678901234",
    "CAST(try_cast({col} AS DECIMAL(10, 2)) / 3 AS STRING)": "7.00",
    "CAST(try_divide(1, length({col})) AS STRING)": "",
    "CAST(try_cast({col} AS FLOAT) AS STRING)": "0.1",
    "round(try_cast({col} AS DOUBLE))": "2.5",
    "format_number(try_cast({col} AS DOUBLE), 2)": "1234.5",
    "conv({col}, 16, 10)": "FFFFFFFF",
    "lower({col})": "İSTANBUL ΑΣ",
    "upper({col})": "ßẞ straße",
    "initcap({col})": "ǆ hello wORLD",
    "trim({col})": "\\t x ",
    "lpad({col}, 5)": "ab",
    "substring({col}, -3, 2)": "abcdef",
    "split({col}, ',')[0]": ",a,b",
    "split_part({col}, '.', 2)": "a.b.c",
    "regexp_replace({col}, '\\\\\\\\d+', '#')": "a1b22",
    "regexp_extract({col}, '(a)(b)?', 2)": "ac",
    "CASE WHEN {col} RLIKE '^a.c$' THEN 'y' ELSE 'n' END": "a\\nc",
    "CASE WHEN {col} LIKE 'a\\\\\\\\_%' THEN 'y' ELSE 'n' END": "a_b",
    "CASE WHEN {col} ILIKE 'STRASSE' THEN 'y' ELSE 'n' END": "straße",
    "CASE WHEN {col} = 'A ' THEN 'y' ELSE 'n' END": "A",
    "CASE WHEN {col} IN ('1', '01') THEN 'y' ELSE 'n' END": "1",
    "CASE WHEN {col} > 9 THEN 'y' ELSE 'n' END": "10",
    "CASE WHEN {col} <=> NULL THEN 'y' ELSE 'n' END": "x",
    "concat({col}, NULL)": "x",
    "concat_ws('-', {col}, NULL, 'z')": "x",
    "coalesce(nullif({col}, 'x'), 'none')": "x",
    "greatest({col}, '5')": "10",
    "hash({col})": "x",
    "sha2({col}, 256)": "x",
    "md5(encode({col}, 'UTF-8'))": "é",
    "decode(encode({col}, 'UTF-16'), 'UTF-16')": "é",
    "base64(encode({col}, 'UTF-8'))": "long " * 20,
    "url_decode({col})": "a%20b+c",
    "parse_url({col}, 'HOST')": "http://a_b.example/x",
    "get_json_object({col}, '$.a')": '{"a": 1.0}',
    "to_json(from_json({col}, 'a INT, b STRING'))": '{"a": "1", "b": null}',
    "to_json(named_struct('a', {col}, 'b', NULL))": "x",
    "to_csv(named_struct('a', {col}, 'b', NULL))": "",
    "CAST(from_csv({col}, 'a INT, d DATE').d AS STRING)": "1,1/2/2024",
    "CAST(str_to_map({col}) AS STRING)": "a:1,b:2",
    "CAST(map(lower({col}), 1, upper({col}), 2) AS STRING)": "x",
    "CAST(get(array({col}, 'b'), 5) AS STRING)": "a",
    "CAST(try_element_at(array({col}), 2) AS STRING)": "a",
    "CAST(sort_array(array({col}, NULL, 'a')) AS STRING)": "b",
    "CAST(size(split(nullif({col}, 'x'), ',')) AS STRING)": "x",
    "CAST(array_contains(array(1, NULL), length({col})) AS STRING)": "xx",
    "CAST(named_struct('a', {col}, 'b', NULL) AS STRING)": "x",
    "CAST(unhex({col}) AS STRING)": "4",
    "CAST(CAST({col} AS BINARY) AS STRING)": "é",
    "elt(1, {col}, 'b')": "a",
    "format_string('%s|%5d', {col}, 7)": "a",
    "to_char(try_cast({col} AS INT), '999')": "12345",
    "try_to_number({col}, '999')": "1x",
    "CAST(make_date(length({col}), 2, 3) AS STRING)": "x",
    "CAST(add_months(try_cast({col} AS DATE), 1) AS STRING)": "2024-01-31",
    "CAST(try_cast({col} AS DATE) + INTERVAL '1' MONTH AS STRING)": "2024-01-31",
    "CAST(datediff(try_cast({col} AS DATE), DATE'1582-10-10') AS STRING)": "1582-10-20",
    "dayofweek(try_cast({col} AS DATE))": "2024-01-31",
    "weekofyear(try_cast({col} AS DATE))": "2021-01-01",
    "CAST(TIMESTAMP'2024-01-01 00:00:00' > try_cast({col} AS TIMESTAMP) AS STRING)": "2023-12-31 23:30:00",
    "CAST(timestamp_seconds(length({col})) AS STRING)": "abc",
    "hour(timestamp_micros(length({col})))": "abc",
    "CAST(CAST(CAST(length({col}) AS TIMESTAMP) AS DATE) AS STRING)": "abc",
    "typeof(try_cast({col} AS TIMESTAMP))": "x",
    "CAST(0.1 + 0.2 AS STRING) || {col}": "x",
    "CAST(1 / 3 AS STRING) || {col}": "x",
    "CAST(CAST(1e10 AS FLOAT) AS STRING) || {col}": "x",
    "CAST('a' < {col} AS STRING)": "B",
    "CASE WHEN {col} < 'b' COLLATE UNICODE_CI THEN 'y' ELSE 'n' END": "A",
    "soundex({col})": "Robert",
    "CAST(levenshtein({col}, 'a') AS STRING)": "abc",
    "luhn_check({col})": "79927398713",
    "quote({col})": "it's",
    "mask({col})": "Ab-1",
    "translate({col}, 'ab', 'x')": "aabb",
    "xpath_string({col}, 'a/b')": "<a><b>x</b></a>",
}
FILTER = "try_to_date(c0, 'yyyy-MM-dd') IS NULL OR lower(c20) > 'A' OR try_cast(c10 AS INT) = 12"
# Tried for each setting that is no flag; most settings refuse most of them.
OTHER = "LEGACY CORRECTED EXCEPTION TIMESTAMP_NTZ HEX STRICT ANSI 0 1 none Asia/Tokyo UTF8_LCASE UNICODE_CI"


@pytest.fixture
def masked(world: World, lake: Lake, table: Callable[[str], str]) -> tuple[World, str]:
    """A table with a column for each mask, and the texts that the masks are given."""
    name, columns = table("settings"), [f"c{number}" for number in range(len(MASKS))]
    types = ", ".join(["id BIGINT", *(f"{column} STRING" for column in columns)])
    rows = lake.spark.newSession().createDataFrame([(1, *MASKS.values())], types)
    rows.writeTo(name).create()
    masks = zip(columns, MASKS, strict=True)
    world.put(
        allow(f"{name}.*", users=["ann"]),
        *(mask(f"{name}.{column}", "CUSTOM", value=text, users=["ann"]) for column, text in masks),
        row_filter(name, FILTER, users=["ann"]),
    )
    return world, name


def changed(session: SparkSession, names: str) -> Iterator[str]:
    """Change each setting that a session may, to each value that it takes, until the next is asked for."""
    for row in session.sql("SET -v").collect():
        name, value = row["key"], str(row["value"]).lower()
        if is_fenced(name) or not session.conf.isModifiable(name) or not re.search(names, name):
            continue
        flipped = {"true": "false", "false": "true"}.get(value)
        for other in [flipped] if flipped else OTHER.split():
            try:
                session.conf.set(name, other)
            except Exception:  # not a value of this setting
                continue
            yield f"{name} = {other}"
            session.conf.unset(name)


def differences(world: World, name: str, names: str) -> tuple[int, list[str]]:
    """Return how many settings were tried, and the masks whose values differ under one."""
    session, wrong, tried = world.session("ann"), [], 0
    before = session.table(name).collect()
    assert len(before) == 1
    for setting in changed(session, names):
        tried += 1
        try:
            found = session.table(name).collect()
        except Exception:  # shows no rows
            continue
        assert len(found) == 1, setting
        values = zip(("id", *MASKS), before[0], found[0], strict=True)
        wrong += [f"{setting}: {one!r}, {other!r} by {text}" for text, one, other in values if one != other]
    return tried, wrong


def test_zones_and_collations_do_not_change_what_masks_give(masked: tuple[World, str]) -> None:
    tried, wrong = differences(*masked, names="session.timeZone|collation|timestampType")
    assert not wrong, "\n".join(wrong)
    assert tried >= 2


@pytest.mark.slow
def test_no_setting_changes_what_masks_give(masked: tuple[World, str]) -> None:
    tried, wrong = differences(*masked, names="")
    assert not wrong, "\n".join(wrong)
    assert tried > 400

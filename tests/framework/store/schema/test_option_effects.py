"""Options of Paimon: the effect of each is declared, and none that changes rows is ignored."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.errors import OptionError, UnsupportedError, UnsupportedFormatError
from lockgate.framework.options.option import REFUSED as REFUSED_EFFECTS
from lockgate.framework.options.option import Effect
from lockgate.framework.options.paimon_options import PAIMON_OPTIONS
from lockgate.framework.options.table_options import ALL_OPTIONS, OWN_OPTIONS, option_of
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.ddl.schema_changes import RemoveOption, SetOption
from lockgate.framework.store.scan.snapshot_selection import Between
from lockgate.framework.store.scan.table_selection import SELECTING as OPTIONS_HONOURED
from lockgate.pushdown import Aggregate, Function, col

MakeTable = Callable[..., Table]

PAIMONS = json.loads((Path(__file__).parents[3] / "fixtures" / "paimon" / "options.json").read_text())
NAMES = sorted({name for group in PAIMONS.values() if isinstance(group, list) for name in group})
ROWS = pa.table({"id": [1, 2], "v": ["a", "b"]})

# A value by which an option means something, where `true` is none.
_VALUES = {
    "type": "object-table",
    "branch": "b",
    "log.scan": "from-timestamp",
    "batch-scan-mode": "compact_bucket_table",
    "scan.fallback-branch": "fb",
    "record-level.expire-time": "1 d",
    "write.sequence-number-init-mode": "snapshot",
}
REFUSED = {
    option.key: option
    for option in ALL_OPTIONS
    if option.effect in REFUSED_EFFECTS and option.pattern is None
}
ROW_BOUND = [key for key, each in REFUSED.items() if each.effect in (Effect.FILES_NOT_READ, Effect.NOT_READ)]
# The others are honoured: tests/framework/store/scan/test_table_selection.py.
SELECTING = sorted(
    key for key, each in REFUSED.items() if each.effect is Effect.SELECTS and key not in OPTIONS_HONOURED
)


def rows_of(read: pa.Table) -> list[dict[str, object]]:
    return read.sort_by("id").to_pylist()  # type: ignore[no-any-return]  # pyarrow has no types


def value_of(key: str) -> str:
    return _VALUES.get(key, "true")


def with_option(catalog: Catalog, table: Table, key: str, value: str) -> Table:
    """Give a table an option in its schema's file, as another engine does."""
    path = Path(table.location) / "schema" / f"schema-{table.schema.id}"
    schema = json.loads(path.read_text())
    schema["options"][key] = value
    path.write_text(json.dumps(schema))
    return catalog.load_table("db.t")


def made(make_table: MakeTable, key: str) -> Table:
    table = make_table(primary_keys=("id",)) if key not in REFUSED or REFUSED[key].needs_key else make_table()
    table.append(ROWS)
    return table


def test_every_option_of_paimon_is_declared() -> None:
    undeclared = [name for name in NAMES if option_of(name) is None]
    assert undeclared == [], "declare in paimon_options what each of these does here"


def test_paimons_options_are_paimons() -> None:
    assert [option.key for option in PAIMON_OPTIONS if not option.pattern and option.key not in NAMES] == []


def test_every_key_is_declared_once() -> None:
    keys = [option.key for option in ALL_OPTIONS]
    assert sorted({key for key in keys if keys.count(key) > 1}) == []


def test_own_options_come_before_families_of_paimons() -> None:
    assert option_of("tag.num-retained-max") in OWN_OPTIONS
    assert option_of("changelog-producer.row-deduplicate") in OWN_OPTIONS
    ignored = option_of("tag.some-other")
    assert ignored is not None
    assert ignored.effect is Effect.IGNORED


def test_an_option_that_nobody_has_is_not_declared() -> None:
    assert option_of("scan.fallback-brunch") is None
    assert option_of("my-own") is None


@pytest.mark.parametrize("key", ROW_BOUND)
def test_an_option_that_changes_rows_is_refused_by_its_name(
    catalog: Catalog, make_table: MakeTable, key: str
) -> None:
    table = with_option(catalog, made(make_table, key), key, value_of(key))
    count = [Aggregate(Function.COUNT)]
    for read in (
        table.read,
        table.scan,
        lambda: table.read(snapshot_id=1),
        lambda: table.aggregate(count),
        lambda: table.aggregate(count, snapshot_id=1),
        lambda: list(table.changes(0, 1)),
        lambda: table.newest_change(),
    ):
        with pytest.raises(UnsupportedError, match=f"option '{key}' = '{value_of(key)}' cannot be read: .+"):
            read()
    with pytest.raises(UnsupportedFormatError, match=f"option '{key}' is not supported"):
        table.append(ROWS)
    with pytest.raises(UnsupportedFormatError, match=f"option '{key}' is not supported"):
        table.overwrite(ROWS)
    assert [snapshot.id for snapshot in table.snapshots()] == [1]


@pytest.mark.parametrize(
    "key", sorted(key for key, each in REFUSED.items() if each.effect is Effect.NOT_WRITTEN)
)
def test_an_option_that_forbids_writing_lets_rows_be_read(
    catalog: Catalog, make_table: MakeTable, key: str
) -> None:
    table = made(make_table, key)
    if key in ("scan.fallback-branch", "scan.primary-branch", "branch"):
        table.create_branch(value_of(key), 1)
    table = with_option(catalog, table, key, value_of(key))
    assert rows_of(table.read()) == ROWS.to_pylist()
    with pytest.raises(UnsupportedFormatError, match=f"option '{key}' is not supported"):
        table.append(ROWS)


@pytest.mark.parametrize("key", SELECTING)
def test_an_option_that_selects_is_refused_unless_the_query_selects(
    catalog: Catalog, make_table: MakeTable, key: str
) -> None:
    table = made(make_table, key)
    table.create_tag("first")
    table = with_option(catalog, table, key, value_of(key))
    count = [Aggregate(Function.COUNT)]
    for read in (
        table.read,
        lambda: table.scan(col("id") == 1),
        lambda: table.aggregate(count),
        lambda: table.newest_change(),
    ):
        with pytest.raises(UnsupportedError, match=f"option '{key}' = .* cannot be read as they stand"):
            read()
    assert rows_of(table.read(snapshot_id=1)) == ROWS.to_pylist()
    assert rows_of(table.read(tag="first")) == ROWS.to_pylist()
    assert rows_of(table.read(table.scan(between=Between(0, 1)))) == ROWS.to_pylist()
    assert table.aggregate(count, snapshot_id=1).rows is not None
    table.append(ROWS)  # what is read of a table does not say what is written
    assert table.read(snapshot_id=2).num_rows == 4


@pytest.mark.parametrize(
    ("key", "value"),
    [(key, value) for key, each in sorted(REFUSED.items()) for value in (*sorted(each.off), " ")],
)
def test_an_option_that_is_off_means_nothing(
    catalog: Catalog, make_table: MakeTable, key: str, value: str
) -> None:
    table = with_option(catalog, made(make_table, key), key, value.upper())
    assert rows_of(table.read()) == ROWS.to_pylist()


@pytest.mark.parametrize("key", sorted(key for key, each in REFUSED.items() if each.needs_key))
def test_an_option_of_key_tables_means_nothing_elsewhere(
    catalog: Catalog, make_table: MakeTable, key: str
) -> None:
    table = make_table()
    table.append(ROWS)
    table = with_option(catalog, table, key, value_of(key))
    table.append(ROWS)
    assert table.read().num_rows == 4


@pytest.mark.parametrize("key", ["write-buffer-size", "sink.parallelism", "my-own", "fields.v.distinct"])
def test_other_options_are_left_alone(catalog: Catalog, make_table: MakeTable, key: str) -> None:
    table = with_option(catalog, made(make_table, key), key, "64 mb")
    table.append(pa.table({"id": [3], "v": ["c"]}))
    assert table.read().num_rows == 3
    assert table.options[key] == "64 mb"


def test_a_layout_of_maps_that_is_not_understood(catalog: Catalog, make_table: MakeTable) -> None:
    table = with_option(catalog, made(make_table, ""), "fields.v.map.storage-layout", "shared-shredding")
    with pytest.raises(UnsupportedError, match=r"'fields\.v\.map\.storage-layout'"):
        table.read()


def test_what_holds_now_counts_for_older_snapshots_too(catalog: Catalog, make_table: MakeTable) -> None:
    """Whichever snapshot is read: another catalog says who may see its rows."""
    table = made(make_table, "")
    table = catalog.alter_table("db.t", [SetOption("snapshot.num-retained.min", "3")])
    table = with_option(catalog, table, "query-auth.enabled", "true")
    with pytest.raises(UnsupportedError, match=r"query-auth\.enabled"):
        table.read(snapshot_id=1)


def test_how_files_are_stored_counts_by_snapshot(catalog: Catalog, make_table: MakeTable) -> None:
    table = made(make_table, "")
    table = catalog.alter_table("db.t", [SetOption("snapshot.num-retained.min", "3")])
    table = with_option(catalog, table, "data-evolution.enabled", "true")
    assert rows_of(table.read(snapshot_id=1)) == ROWS.to_pylist()
    with pytest.raises(UnsupportedError, match=r"data-evolution\.enabled"):
        table.read()


def test_the_option_can_be_taken_away(catalog: Catalog, make_table: MakeTable) -> None:
    with_option(catalog, made(make_table, ""), "scan.snapshot-id", "1")
    table = catalog.alter_table("db.t", [RemoveOption("scan.snapshot-id")])
    assert rows_of(table.read()) == ROWS.to_pylist()


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("scan.fallback-branch", "is Paimon's and not supported here: partitions"),
        ("scan.snapshot-id", "is Paimon's and not supported here: it selects an older state"),
        ("write-buffer-size", r"is Paimon's and does nothing here \(where or how .*\): leave it out"),
        ("scan.fallback-brunch", "unknown option"),
    ],
)
def test_a_table_is_not_given_an_option_of_others(
    catalog: Catalog, make_table: MakeTable, key: str, text: str
) -> None:
    make_table()
    with pytest.raises(OptionError, match=f"{key}' {text}|{text} '{key}'"):
        catalog.alter_table("db.t", [SetOption(key, "x")])
    with pytest.raises(OptionError, match=f"{key}' {text}|{text} '{key}'"):
        catalog.create_table("db.u", Schema.from_arrow(ROWS.schema, options={key: "x"}))

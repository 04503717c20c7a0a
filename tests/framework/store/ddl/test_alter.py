"""Schemas change; what was written before stays readable."""

from __future__ import annotations

import datetime
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.errors import (
    AlreadyExistsError,
    ColumnNotFoundError,
    CommitConflictError,
    InputError,
    OptionError,
    TableNotFoundError,
    UnsupportedError,
)
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.ddl.schema_changes import (
    FIRST,
    AddColumn,
    ChangeComment,
    ChangeNullability,
    ChangeType,
    DropColumn,
    MoveColumn,
    Position,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetComment,
    SetOption,
)
from lockgate.framework.types import (
    BIGINT,
    INT,
    STRING,
    TINYINT,
    DataField,
    array,
    decimal,
    row,
)
from lockgate.pushdown import col

KEYS = MemoryKeyProvider({"pii@0": bytes(range(16))})

PEOPLE = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int32()),
        "name": ["Ann", "Bob", "Cid"],
        "age": pa.array([9, 10, 11], pa.int16()),
        "home": pa.array(
            [{"city": "Rome", "zip": 1}, {"city": "Oslo", "zip": 2}, None],
            pa.struct([("city", pa.string()), ("zip", pa.int32())]),
        ),
        "scores": pa.array([[1], [], [2, 3]], pa.list_(pa.int32())),
    }
)


@pytest.fixture
def people(tmp_path: Path) -> tuple[Catalog, Table]:
    catalog = Catalog(tmp_path, keys=KEYS)
    catalog.create_namespace("db")
    table = catalog.create_table("db.people", Schema.from_arrow(PEOPLE.schema))
    table.append(PEOPLE)
    return catalog, table


def _alter(people: tuple[Catalog, Table], *changes: SchemaChange) -> Table:
    return people[0].alter_table("db.people", changes)


def test_added_columns_are_null_in_old_rows_and_take_the_place_asked_for(people) -> None:
    inner = row((DataField(0, "c", INT),))
    nested = row((DataField(0, "a", INT), DataField(0, "b", array(inner))))
    table = _alter(
        people,
        AddColumn(("email",), STRING, "how to reach", Position("name")),
        AddColumn(("first",), BIGINT, None, FIRST),
        AddColumn(("home", "street"), STRING, None, FIRST),
        AddColumn(("last",), nested),
    )
    assert table.schema.field_names == ("first", "id", "name", "email", "age", "home", "scores", "last")
    found = table.read().to_pylist()
    assert found[0] == {
        **PEOPLE.slice(0, 1).to_pylist()[0],
        "first": None,
        "email": None,
        "home": {"street": None, "city": "Rome", "zip": 1},
        "last": None,
    }
    assert found[2]["home"] is None
    ids = [field.id for field in table.schema.fields]
    assert len(set(ids)) == len(ids)
    assert table.schema.field("email").description == "how to reach"
    assert table.schema.highest_field_id == 13
    new = table.read().slice(0, 1)
    table.append(new)
    assert table.read().num_rows == 4


def test_a_column_added_again_does_not_bring_back_what_was_dropped(people) -> None:
    table = _alter(people, DropColumn(("name",)))
    assert "name" not in table.read().column_names
    table = _alter(people, AddColumn(("name",), STRING))
    assert table.read()["name"].to_pylist() == [None] * 3
    table = _alter(people, DropColumn(("home", "zip")), AddColumn(("home", "zip"), INT))
    homes = [{"city": "Rome", "zip": None}, {"city": "Oslo", "zip": None}, None]
    assert table.read()["home"].to_pylist() == homes


def test_renamed_and_moved_columns_keep_their_values(people) -> None:
    table = _alter(
        people,
        RenameColumn(("name",), "called"),
        RenameColumn(("home", "city"), "town"),
        MoveColumn(("called",), FIRST),
        MoveColumn(("home", "zip"), FIRST),
        MoveColumn(("id",), Position("scores")),
    )
    assert table.schema.field_names == ("called", "age", "home", "scores", "id")
    found = table.read(predicate=col("called") == "Bob").to_pylist()
    assert found == [{"called": "Bob", "age": 10, "home": {"zip": 2, "town": "Oslo"}, "scores": [], "id": 2}]


def test_columns_inside_arrays_and_maps_change(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_namespace("db")
    part = pa.struct([("a", pa.int32()), ("b", pa.string())])
    data = pa.table(
        {
            "list": pa.array([[{"a": 1, "b": "x"}, None], [], None, [{"a": 2, "b": None}]], pa.list_(part)),
            "map": pa.array(
                [[("k", {"a": 3, "b": "y"})], [], None, [("l", None)]], pa.map_(pa.string(), part)
            ),
        }
    )
    catalog.create_table("db.t", Schema.from_arrow(data.schema)).append(data)
    table = catalog.alter_table(
        "db.t",
        [
            AddColumn(("list", "element", "c"), INT, None, FIRST),
            RenameColumn(("list", "element", "b"), "text"),
            DropColumn(("map", "value", "b")),
            AddColumn(("map", "value", "b"), INT),
            ChangeType(("map", "value", "a"), BIGINT),
        ],
    )
    table.append(table.read().slice(3))
    assert table.read().to_pylist() == [
        {"list": [{"c": None, "a": 1, "text": "x"}, None], "map": [("k", {"a": 3, "b": None})]},
        {"list": [], "map": []},
        {"list": None, "map": None},
        {"list": [{"c": None, "a": 2, "text": None}], "map": [("l", None)]},
        {"list": [{"c": None, "a": 2, "text": None}], "map": [("l", None)]},
    ]


def test_two_columns_can_change_their_names_for_each_other(people) -> None:
    _alter(people, AddColumn(("nick",), STRING))
    table = _alter(
        people, RenameColumn(("name",), "x"), RenameColumn(("nick",), "name"), RenameColumn(("x",), "nick")
    )
    assert table.read()["nick"].to_pylist() == ["Ann", "Bob", "Cid"]
    assert table.read()["name"].to_pylist() == [None] * 3


def test_wider_types_read_old_values_and_prune_right(people) -> None:
    table = _alter(
        people,
        ChangeType(("age",), BIGINT),
        ChangeType(("scores", "element"), BIGINT),
        ChangeType(("home", "zip"), BIGINT),
    )
    table.append(table.read().slice(0, 1).set_column(2, "age", pa.array([2**40])))
    assert table.read()["age"].to_pylist() == [9, 10, 11, 2**40]
    assert table.read(predicate=col("age") > 9)["age"].to_pylist() == [10, 11, 2**40]
    assert table.read()["scores"].to_pylist() == [[1], [], [2, 3], [1]]
    assert table.read()["home"].type.field("zip").type == pa.int64()


def test_key_columns_keep_their_type_and_their_place_but_not_their_name(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_namespace("db")
    schema = Schema.from_arrow(
        pa.schema([("day", pa.date32()), ("id", pa.int64()), ("v", pa.string())]),
        partition_keys=["day"],
        primary_keys=["day", "id"],
        options={"bucket": "2"},
    )
    table = catalog.create_table("db.t", schema)
    day = datetime.date(2026, 1, 1)
    table.append(pa.table({"day": [day, day], "id": [1, 2], "v": ["a", "b"]}, table.schema.arrow_schema))
    table = catalog.alter_table("db.t", [RenameColumn(("id",), "number")])
    assert table.schema.primary_keys == ("day", "number")
    table.append(pa.table({"day": [day], "number": [2], "v": ["c"]}, table.schema.arrow_schema))
    found = table.read().sort_by("number").to_pylist()
    assert [(one["number"], one["v"]) for one in found] == [(1, "a"), (2, "c")]
    assert table.read(predicate=col("number") == 2)["v"].to_pylist() == ["c"]
    for change, words in [
        (ChangeType(("number",), decimal(19)), "primary key"),
        (DropColumn(("number",)), "primary key"),
        (RenameColumn(("day",), "date"), "partition column"),
        (DropColumn(("day",)), "partition column"),
        (ChangeNullability(("number",), True), "primary key"),
    ]:
        with pytest.raises(InputError, match=words):
            catalog.alter_table("db.t", [change])
    assert catalog.load_table("db.t").schema.id == 1


def test_encryption_follows_a_renamed_column(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path, keys=KEYS)
    catalog.create_namespace("db")
    kind = pa.struct([("zip", pa.string()), ("city", pa.string())])
    homes = pa.array([{"zip": "SECRET-3", "city": "Rome"}], kind)
    data = pa.table({"ssn": ["SECRET-1"], "mail": ["SECRET-2"], "home": homes})
    options = {"orc.encrypt": "pii:ssn,mail,home.zip", "orc.mask": "sha256:mail"}
    catalog.create_table("db.t", Schema.from_arrow(data.schema, options=options)).append(data)
    table = catalog.alter_table(
        "db.t",
        [
            RenameColumn(("ssn",), "social"),
            RenameColumn(("mail",), "email"),
            RenameColumn(("home",), "address"),
        ],
    )
    assert table.options["orc.encrypt"] == "pii:social,email,address.zip"
    assert table.options["orc.mask"] == "sha256:email"
    table = catalog.alter_table("db.t", [RenameColumn(("address", "zip"), "code")])
    assert table.options["orc.encrypt"] == "pii:social,email,address.code"
    again = table.read()
    assert again.to_pylist() == [
        {"social": "SECRET-1", "email": "SECRET-2", "address": {"code": "SECRET-3", "city": "Rome"}}
    ]
    table.append(again)
    for path in Path(table.location).rglob("*"):
        if path.is_file():
            assert b"SECRET" not in path.read_bytes()
    table = catalog.alter_table("db.t", [DropColumn(("social",)), DropColumn(("email",))])
    assert table.options["orc.encrypt"] == "pii:address.code"
    assert "orc.mask" not in table.options


def test_a_writer_that_does_not_know_a_new_encryption_is_refused(people) -> None:
    table = people[1]
    messages = table.write(PEOPLE)
    _alter(people, SetOption("orc.encrypt", "pii:name"))
    with pytest.raises(CommitConflictError, match=r"orc\.encrypt"):
        table.commit(messages)


def test_options_and_comments(people) -> None:
    table = _alter(
        people,
        SetOption("target-file-size", "64 mb"),
        SetOption("fields.name.stats-mode", "none"),
        RenameColumn(("name",), "called"),
        SetComment("who is who"),
        ChangeComment(("age",), "in years"),
        RemoveOption("never.set"),
    )
    assert table.options["target-file-size"] == "64 mb"
    assert table.options["fields.called.stats-mode"] == "none"
    assert table.schema.comment == "who is who"
    assert table.schema.field("age").description == "in years"
    table = _alter(people, RemoveOption("target-file-size"), SetComment(None), ChangeComment(("age",), None))
    assert "target-file-size" not in table.options
    assert table.schema.comment is None
    assert table.schema.field("age").description is None


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (AddColumn(("NAME",), STRING), AlreadyExistsError, "NAME"),
        (AddColumn(("home", "Zip"), STRING), AlreadyExistsError, r"home\.Zip"),
        (AddColumn(("x",), STRING.with_nullable(False)), InputError, "NOT NULL"),
        (AddColumn(("x",), STRING, None, Position("nam")), ColumnNotFoundError, "did you mean 'name'"),
        (AddColumn(("age", "x"), STRING), InputError, "no columns inside"),
        (AddColumn(("_KEY_x",), STRING), InputError, "reserved"),
        (AddColumn(("scores", "element", "x"), INT), InputError, "no columns inside"),
        (DropColumn(("nam",)), ColumnNotFoundError, "did you mean 'name'"),
        (DropColumn(("scores", "element")), InputError, "part of an array"),
        (DropColumn(("scores", "key")), ColumnNotFoundError, "it has element"),
        (RenameColumn(("home", "citi"), "x"), ColumnNotFoundError, "in home; did you mean 'city'"),
        (RenameColumn(("name",), "Age"), AlreadyExistsError, "Age"),
        (RenameColumn(("scores", "element"), "x"), InputError, "no columns inside"),
        (ChangeType(("age",), TINYINT), UnsupportedError, "SMALLINT cannot become TINYINT"),
        (ChangeNullability(("age",), False), InputError, "may hold nulls"),
        (SetOption("bucket", "4"), InputError, "from -1 to 4"),
        (SetOption("merge-engine", "first-row"), InputError, "merge-engine"),
        (SetOption("primary-key", "id"), InputError, "primary-key"),
        (SetOption("targetfilesize", "1"), OptionError, "did you mean 'target-file-size'"),
        (SetOption("target-file-size", "big"), OptionError, "128 mb"),
        (SetOption("orc.encrypt", "pii:nam"), ColumnNotFoundError, "did you mean 'name'"),
        (SetOption("row-tracking.enabled", "true"), OptionError, "not supported"),
    ],
)
def test_what_cannot_be_changed(people, change: SchemaChange, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        _alter(people, SetComment("not even this"), change)
    assert people[0].load_table("db.people").schema == people[1].schema


def test_a_column_that_is_not_there_may_be_dropped_on_request(people) -> None:
    assert _alter(people, DropColumn(("nothing",), if_exists=True)).schema.fields == people[1].schema.fields


def test_the_last_column_stays(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_namespace("db")
    catalog.create_table("db.t", Schema.from_arrow(pa.schema([("a", pa.int32())])))
    with pytest.raises(InputError, match="no other would be left"):
        catalog.alter_table("db.t", [DropColumn(("a",))])
    # An empty table may learn what one with rows may not.
    table = catalog.alter_table(
        "db.t", [ChangeNullability(("a",), False), AddColumn(("b",), STRING.with_nullable(False))]
    )
    assert [field.type.nullable for field in table.schema.fields] == [False, False]


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_namespace("db")
    with pytest.raises(TableNotFoundError, match="nothing"):
        catalog.alter_table("db.nothing", [SetComment("x")])


def test_changes_at_once_all_happen(people) -> None:
    catalog, _ = people
    errors: list[BaseException] = []

    def add(number: int) -> None:
        try:
            catalog.alter_table("db.people", [AddColumn((f"c{number}",), INT)])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    schema = catalog.load_table("db.people").schema
    assert schema.id == 8
    assert {f"c{number}" for number in range(8)} <= set(schema.field_names)
    assert len({field.id for field in schema.fields}) == len(schema.fields)


def test_old_snapshots_are_read_with_the_schema_they_had(people) -> None:
    table = _alter(people, DropColumn(("age",)), RenameColumn(("name",), "called"))
    assert table.read(snapshot_id=1).column_names == PEOPLE.column_names
    assert table.read(snapshot_id=1)["age"].to_pylist() == [9, 10, 11]

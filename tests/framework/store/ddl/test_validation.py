"""What cannot be a table is refused when it is created, with the reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import ColumnNotFoundError, InputError, OptionError, UnsupportedTypeError
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.ddl.schema_changes import DropColumn, SetOption

MakeTable = Callable[..., Table]

COLUMNS = pa.schema(
    [("id", pa.int64()), ("ssn", pa.string()), ("dt", pa.string()), ("tags", pa.list_(pa.string()))]
)


def create(catalog: Catalog, options: dict[str, str], columns: pa.Schema = COLUMNS, **keys: Any) -> Table:
    return catalog.create_table("db.t", Schema.from_arrow(columns, options=options, **keys))


def test_keys_may_come_as_options(catalog: Catalog) -> None:
    table = create(catalog, {"primary-key": "id, dt", "partition": "dt", "owner": "me", "comment": "hi"})
    schema = table.schema
    assert (schema.primary_keys, schema.partition_keys) == (("id", "dt"), ("dt",))
    assert schema.trimmed_primary_keys == schema.bucket_keys == ("id",)
    assert schema.options == {"owner": "me", "bucket": "1", "file.format": "orc"}
    assert schema.comment == "hi"
    assert not schema.field("id").type.nullable
    assert schema.field("ssn").type.nullable


def test_an_append_table_has_no_buckets_by_default(catalog: Catalog) -> None:
    assert create(catalog, {}).schema.bucket_count == -1


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"primary-key": "idd"}, ColumnNotFoundError, "primary key column 'idd'.*did you mean 'id'"),
        ({"partition": "day"}, ColumnNotFoundError, "partition column 'day'"),
        ({"bucket": "4", "bucket-key": "idd"}, ColumnNotFoundError, "bucket column 'idd'"),
        ({"primary-key": "id", "partition": "dt"}, InputError, "must include the partition columns; dt"),
        ({"primary-key": "dt", "partition": "dt"}, InputError, "partition columns only"),
        ({"primary-key": "id,id"}, InputError, "named twice"),
        ({"primary-key": "tags"}, UnsupportedTypeError, "'tags' of type ARRAY<STRING>"),
        ({"partition": "tags"}, UnsupportedTypeError, "'tags'"),
        ({"primary-key": "id", "bucket": "-2"}, OptionError, "postponed buckets"),
        ({"primary-key": "id", "bucket": "-1", "bucket-key": "id"}, OptionError, "needs a fixed number"),
        ({"primary-key": "id", "bucket-key": "ssn"}, OptionError, "part of the primary key; ssn is not"),
        ({"bucket": "4"}, OptionError, "needs option 'bucket-key'"),
        ({"bucket-key": "id"}, OptionError, "needs option 'bucket'"),
        ({"bucket": "2", "bucket-key": "dt", "partition": "dt"}, OptionError, "partition columns: dt"),
        ({"merge-engine": "aggregation"}, OptionError, "needs a primary key"),
        ({"file.format": "csv"}, OptionError, "written as orc or parquet"),
        ({"file.format.per.level": "0:avro"}, OptionError, "written as orc or parquet"),
        ({"file.format.per.level": "parquet"}, OptionError, "expected levels and values"),
        ({"file.compression": "gzip"}, OptionError, "cannot be 'gzip' for orc files"),
        ({"file.format": "parquet", "orc.encrypt": "pii:ssn"}, OptionError, "every value in the clear"),
        (
            {"file.format.per.level": "5:parquet", "orc.encrypt": "pii:ssn"},
            OptionError,
            "every value in the clear",
        ),
        (
            {"primary-key": "id", "deletion-vectors.enabled": "true", "merge-engine": "first-row"},
            OptionError,
            "deletes no row",
        ),
        ({"changelog-producer": "input"}, OptionError, "needs a primary key"),
        ({"sequence.field": "id"}, OptionError, "'sequence.field' needs a primary key"),
        ({"primary-key": "id", "sequence.field": "dtt"}, OptionError, "no column 'dtt'; did you mean 'dt'"),
        ({"primary-key": "id", "sequence.field": "tags"}, OptionError, "'tags' of type ARRAY.*no order"),
        ({"primary-key": "id", "sequence.field": "dt,dt"}, OptionError, "column twice"),
        ({"sequence.field.sort-order": "ascending"}, OptionError, "needs option 'sequence.field'"),
        (
            {"primary-key": "id", "sequence.field": "dt", "sequence.field.sort-order": "up"},
            OptionError,
            "expected one of: ascending, descending",
        ),
        ({"sequence.feild": "dt"}, OptionError, "did you mean 'sequence.field'"),
        ({"bukket": "1"}, OptionError, "did you mean 'bucket'"),
        ({"primary-key": "id", "bucket": "0"}, OptionError, "positive"),
    ],
)
def test_a_table_that_cannot_be_created_is_refused(
    catalog: Catalog, options: dict[str, str], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        create(catalog, options)
    assert catalog.list_tables("db") == []


def test_contradicting_keys(catalog: Catalog) -> None:
    with pytest.raises(OptionError, match="'primary-key' says dt, the schema id"):
        create(catalog, {"primary-key": "dt"}, primary_keys=["id"])


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ([], "at least one column"),
        ([("a", pa.int32()), ("A", pa.int32())], "two columns"),
        ([("a", pa.int32()), ("a", pa.int32())], "two columns"),
        ([("_KEY_a", pa.int32())], "reserved"),
        ([("_VALUE_KIND", pa.int32())], "reserved"),
        ([("_ROW_ID", pa.int64())], "reserved"),
        ([(" ", pa.int32())], "needs a name"),
    ],
)
def test_columns_that_cannot_be(catalog: Catalog, columns: list[tuple[str, pa.DataType]], text: str) -> None:
    with pytest.raises(InputError, match=text):
        create(catalog, {}, pa.schema(columns))


def test_a_table_of_partition_columns_only(catalog: Catalog) -> None:
    with pytest.raises(InputError, match="in addition to its partition columns"):
        create(catalog, {"partition": "a"}, pa.schema([("a", pa.int32())]))


def test_sequence_columns_cannot_be_encrypted(catalog: Catalog) -> None:
    with pytest.raises(InputError, match=r"'ssn' cannot be encrypted, because 'sequence\.field' names it"):
        create(catalog, {"primary-key": "id", "sequence.field": "dt,ssn", "orc.encrypt": "pii:ssn"})


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"primary-key": "id", "orc.encrypt": "pii:id"}, "primary key"),
        ({"partition": "dt", "orc.encrypt": "pii:ssn,dt"}, "partition"),
        ({"bucket": "2", "bucket-key": "ssn", "orc.encrypt": "pii:ssn"}, "bucket"),
    ],
)
def test_columns_that_place_rows_cannot_be_encrypted(
    catalog: Catalog, options: dict[str, str], what: str
) -> None:
    with pytest.raises(InputError, match=f"cannot be encrypted, because it is a {what} column"):
        create(catalog, options)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"orc.encrypt": "pii:sssn"}, ColumnNotFoundError),
        ({"orc.encrypt": "pii"}, OptionError),
        ({"orc.mask": "nullify:ssn"}, OptionError),
        ({"orc.encrypt": "pii:ssn", "orc.mask": "blur:ssn"}, OptionError),
    ],
)
def test_encryption_options_are_checked(
    catalog: Catalog, options: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        create(catalog, options)


def test_an_encrypted_table_can_be_created(catalog: Catalog) -> None:
    table = create(catalog, {"primary-key": "id", "orc.encrypt": "pii:ssn", "orc.mask": "nullify:ssn"})
    assert table.options["orc.encrypt"] == "pii:ssn"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"metadata.stats-mode": "input"}, "option 'metadata.stats-mode': a statistics mode is none, counts"),
        ({"fields.id.stats-mode": "truncate(0)"}, "option 'fields.id.stats-mode': a statistics mode is"),
        ({"fields.sssn.stats-mode": "none"}, "there is no column 'sssn'; did you mean 'ssn'"),
    ],
)
def test_modes_of_statistics_are_checked(catalog: Catalog, options: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError, match=re.escape(words)):
        create(catalog, options)
    table = create(catalog, {"metadata.stats-mode": "Truncate(4)", "fields.ssn.stats-mode": "counts"})
    with pytest.raises(OptionError, match=re.escape(words)):
        catalog.alter_table(table.identifier, [SetOption(*item) for item in options.items()])
    catalog.alter_table(table.identifier, [DropColumn(("ssn",))])
    assert "fields.ssn.stats-mode" not in catalog.load_table(table.identifier).schema.options

"""What Spark writes by Java is what Python writes: masks and values of every type, whole and in parts."""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import lockgate
from lockgate.errors import OptionError, UnsupportedError
from lockgate.framework.orc import EncryptedOrcFile
from lockgate.framework.orc.format.layout import StreamKind
from lockgate.framework.orc.format.stripe import read_stripe
from lockgate.framework.orc.format.tail import read_tail
from lockgate.framework.orc.masks.java_support import WRITTEN
from lockgate.framework.orc.sources.file_source import open_source
from lockgate.framework.store import Schema
from lockgate.framework.types import Kind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]

pytestmark = pytest.mark.filterwarnings("ignore::lockgate.errors.MaskedDataWarning")

D = decimal.Decimal
UTC = datetime.UTC


def _day(text: str) -> datetime.date:
    return datetime.date.fromisoformat(text)


def _time(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


# Spark's type and some values of it, for each kind of column.
VALUES: dict[str, tuple[Kind, str, list[Any]]] = {
    "flag": (Kind.BOOLEAN, "BOOLEAN", [True, False]),
    "tiny": (Kind.TINYINT, "TINYINT", [0, 7, -9, 100, -128, 127]),
    "small": (Kind.SMALLINT, "SMALLINT", [0, 12345, -32768, 99]),
    "whole": (Kind.INT, "INT", [0, 2**31 - 1, -(2**31), -5, 1234567]),
    "big": (Kind.BIGINT, "BIGINT", [0, 2**63 - 1, -(2**63), 10**17, 10**18, -42]),
    "single": (Kind.FLOAT, "FLOAT", [0.0, 1.5, -2.25e10, 3e-20, float("inf"), float("nan")]),
    "double": (Kind.DOUBLE, "DOUBLE", [0.0, 0.001, -123.456, 9.99e300, 1e-310, float("-inf"), float("nan")]),
    "money": (Kind.DECIMAL, "DECIMAL(10,2)", [D("1.50"), D("-99.99"), D("0.00"), D("12345678.90")]),
    "share": (Kind.DECIMAL, "DECIMAL(2,2)", [D("0.50"), D("-0.07")]),
    "huge": (Kind.DECIMAL, "DECIMAL(38,10)", [D("12345678901234567890.5"), D("-1"), D("0.0000000001")]),
    "word": (Kind.VARCHAR, "STRING", ["Ab1 $.", "ß–é«x»", "", "東京🙂", "12-34", "x" * 300]),
    "short": (Kind.VARCHAR, "VARCHAR(70)", ["Ab1", "naïve", ""]),
    "code": (Kind.CHAR, "CHAR(64)", ["c" * 64, "0123456789abcdef" * 4]),
    "blob": (Kind.VARBINARY, "BINARY", [b"", b"abc", bytes(range(256))]),
    "day": (
        Kind.DATE,
        "DATE",
        [_day("2024-02-29"), _day("1969-12-31"), _day("0001-01-01"), _day("9999-12-31")],
    ),
    "wall": (
        Kind.TIMESTAMP,
        "TIMESTAMP_NTZ",
        [_time("2024-12-31 23:59:59.999999"), _time("1960-05-06 07:08:09.5")],
    ),
    "instant": (
        Kind.TIMESTAMP_LTZ,
        "TIMESTAMP",
        [
            _time("2024-12-31T23:59:59.25+00:00"),
            _time("2024-03-10T07:30:00+00:00"),
            _time("1960-05-06T07:08:09+00:00"),
        ],
    ),
}

MASKS = [
    "nullify",
    "sha256",
    "redact",
    "redact,`Yz7#!-`,`2001 _ 31 5`",
    "redact,_____,`_ 2 _ _ 0 _`,`0:1,-2:-1`",
]
NAMED_BY_SHA256 = {Kind.CHAR, Kind.VARCHAR, Kind.BINARY, Kind.VARBINARY}


@pytest.fixture(scope="module")
def blind(lake: Lake, lake_folder: Path) -> Lake:
    """The same warehouse as a catalog without keys."""
    return lockgate.connect(str(lake_folder / "warehouse"), spark=lake.spark, catalog="blind")


def _rows(columns: dict[str, tuple[Kind, str, list[Any]]]) -> list[dict[str, Any]]:
    """Rows that show every value once, and nulls."""
    longest = max(len(values) for _, _, values in columns.values())
    return [
        {name: (values[i] if i < len(values) else None) for name, (_, _, values) in columns.items()}
        for i in range(longest + 1)
    ]


def _files(lake: Lake, name: str) -> list[str]:
    table = lake.catalog.load_table(name.removeprefix("lake."))
    return sorted(path for split in table.scan().splits for path in split.paths)


def _masked_and_true(lake: Lake, path: str) -> tuple[pa.Table, pa.Table]:
    with EncryptedOrcFile(path, lake.catalog.keys, timestamp_unit="us") as file:
        true = file.read()
    with EncryptedOrcFile(path, None, timestamp_unit="us") as file:
        masked = file.read()
    return masked, true


def _plain(table: pa.Table) -> list[dict[str, str]]:
    """Rows as text, so that NaN equals itself and -0.0 is not 0.0, in an order of their own."""
    rows = [{name: repr(value) for name, value in row.items()} for row in table.to_pylist()]
    return sorted(rows, key=lambda row: sorted(row.items()))


def _write_both(
    lake: Lake, spark: SparkSession, table: Named, ddl: str, options: str, rows: Any
) -> tuple[str, str]:
    """Make two tables with the same rows, one written by Spark, one by Python from what Spark's holds."""
    names = table("by_spark"), table("by_python")
    for name in names:
        spark.sql(f"CREATE TABLE {name} ({ddl}) TBLPROPERTIES ({options})")
    frame = spark.createDataFrame(rows, re.sub(r"(VAR)?CHAR\(\d+\)", "STRING", ddl))
    frame.coalesce(1).writeTo(names[0]).append()
    source = lake.catalog.load_table(names[0].removeprefix("lake."))
    target = lake.catalog.load_table(names[1].removeprefix("lake."))
    target.append(source.read())
    return names


@pytest.mark.parametrize("mask", MASKS)
def test_every_type_under_every_mask(lake: Lake, spark: SparkSession, table: Named, mask: str) -> None:
    """The bugs of orc-core (strings and small decimals under redact, binaries under sha256) do not show."""
    name = mask.partition(",")[0]
    columns = {
        column: made
        for column, made in VALUES.items()
        if made[0] in WRITTEN[name] and (name != "sha256" or made[0] in NAMED_BY_SHA256)
    }
    ddl = "id INT, " + ", ".join(f"{column} {made[1]}" for column, made in columns.items())
    listed = ",".join(columns)
    options = f"'orc.encrypt' = 'pii:{listed}', 'orc.mask' = '{mask}:{listed}'"
    rows = [{"id": number, **row} for number, row in enumerate(_rows(columns))]
    by_spark, by_python = _write_both(lake, spark, table, ddl, options, [tuple(row.values()) for row in rows])
    (from_java,), (from_python,) = _files(lake, by_spark), _files(lake, by_python)
    java, python = _masked_and_true(lake, from_java), _masked_and_true(lake, from_python)
    for column in ["id", *columns]:
        for which, one, other in zip(("masks", "values"), java, python, strict=True):
            found, wanted = _plain(one.select(["id", column])), _plain(other.select(["id", column]))
            if VALUES.get(column, (None,))[0] is Kind.CHAR:  # Java fills CHAR up with blanks
                found, wanted = ([str(row).replace(" ", "") for row in each] for each in (found, wanted))
            assert found == wanted, (column, which)
    if name != "nullify":
        assert java[0].column("id").null_count == 0
        hidden = {column for column in columns if java[0].column(column).null_count == len(rows)}
        assert hidden == ({"blob"} if name == "redact" else set())  # of binaries redact leaves nothing
    with EncryptedOrcFile(from_java) as one, EncryptedOrcFile(from_python) as other:
        assert [str(each.mask) for each in one.variants] == [str(each.mask) for each in other.variants]


NESTED = (
    "id INT, address STRUCT<zip: STRING, street: STRING, n: INT, paid: DECIMAL(5,2)>, "
    "lst ARRAY<STRUCT<q: STRING, r: BIGINT>>, mp MAP<STRING, ARRAY<STRING>>, deep ARRAY<ARRAY<STRING>>"
)
NESTED_OPTIONS = (
    "'orc.encrypt' = 'pii:address.zip,address.paid,lst._elem.q,mp;other:deep', "
    "'orc.mask' = 'sha256:address.zip,lst._elem.q;redact:address.paid,mp,deep'"
)


def _nested_rows() -> Iterator[tuple[Any, ...]]:
    """Rows with nulls at every depth; more than 1,024 elements to a batch, at which orc-core's masks fail."""
    for i in range(1600):
        address = (
            None if i % 7 == 0 else (None if i % 5 == 0 else f"z{i}", f"street {i}", i, D(i % 1000) / 100)
        )
        lst = None if i % 11 == 0 else [None if j == 2 else (f"q{i}-{j}", j) for j in range(i % 4)]
        mp = None if i % 13 == 0 else {f"K{j}": [f"v{i}", None] for j in range(i % 3)}
        yield i, address, lst, mp, [[f"d{i}", None], [], None] if i % 2 else None


def test_parts_of_columns(lake: Lake, blind: Lake, spark: SparkSession, table: Named) -> None:
    """`orc.encrypt` names leaves of structs, elements and nested columns: both writers, both readers."""
    names = _write_both(lake, spark, table, NESTED, NESTED_OPTIONS, list(_nested_rows()))
    (from_java,), (from_python,) = _files(lake, names[0]), _files(lake, names[1])
    java, python = _masked_and_true(lake, from_java), _masked_and_true(lake, from_python)
    assert java[0].sort_by("id").to_pylist() == python[0].sort_by("id").to_pylist()
    assert java[1].sort_by("id").to_pylist() == python[1].sort_by("id").to_pylist()
    shown = java[0].sort_by("id").to_pylist()[1]
    assert shown["address"]["street"] == "street 1"
    assert len(shown["address"]["zip"]) == 64
    assert shown["deep"] == [["x9", None], [], None]
    query = (
        "SELECT count(address.zip), min(address.zip), max(get(lst, 0).q), min(get(get(deep, 0), 0)), sum(id) "
        "FROM {}"
    )
    whole = spark.sql(query.format(names[0])).first()
    for name in names:
        assert spark.sql(query.format(name)).first() == whole
        hidden = spark.sql(query.format(name.replace("lake.", "blind.", 1))).first()
        assert hidden[0] == whole[0]
        assert len(hidden[1]) == len(hidden[2]) == 64
        assert hidden[3] == "x9"
        assert hidden[4] == whole[4]
        # Compared by the values with the key, by the masks without; never by one in place of the other.
        assert spark.sql(f"SELECT id FROM {name} WHERE address.zip = 'z22'").collect() == [(22,)]
        assert spark.sql(f"SELECT id FROM {name} WHERE address.street = 'street 22'").collect() == [(22,)]
        other = name.replace("lake.", "blind.", 1)
        assert spark.sql(f"SELECT id FROM {other} WHERE address.zip = 'z22'").collect() == []
        digest = spark.sql("SELECT upper(sha2('z22', 256))").collect()[0][0]
        assert spark.sql(f"SELECT id FROM {other} WHERE address.zip = '{digest}'").collect() == [(22,)]
        marks = {field.name: field.metadata for field in blind.table(name.removeprefix("lake.")).schema}
        assert marks["address"] == {"lockgate.masked": "pii"}
        assert marks["id"] == {}
    for name in names:
        location = Path(lake.catalog.load_table(name.removeprefix("lake.")).location)
        for path in location.rglob("*"):
            assert not path.is_file() or (
                b"z1234" not in path.read_bytes() and b"d1599" not in path.read_bytes()
            ), path


def test_no_statistics_of_what_is_encrypted(lake: Lake, spark: SparkSession, table: Named) -> None:
    name = table("t")
    spark.sql(
        f"CREATE TABLE {name} (id INT, ssn STRING, a STRUCT<zip: STRING>, open STRING) TBLPROPERTIES ("
        "'orc.encrypt' = 'pii:ssn,a.zip', 'orc.mask' = 'redact:ssn')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1, 'secret', named_struct('zip', 'hidden'), 'seen')")
    loaded = lake.catalog.load_table(name.removeprefix("lake."))
    (entry,) = loaded.manifests.live_files(loaded.latest_snapshot())
    assert entry.file.value_stats_cols == ("id", "open")
    stored = b"".join(path.read_bytes() for path in Path(loaded.location).rglob("*") if path.is_file())
    assert b"secret" not in stored
    assert b"hidden" not in stored


REFUSED = {
    "a digest that is cut off": ("c VARCHAR(10)", "'orc.mask' = 'sha256:c'", "64 characters"),
    "a digest of a number": ("c INT", "'orc.mask' = 'sha256:c'", "use nullify"),
    "an unknown mask": ("c STRING", "'orc.mask' = 'redakt:c'", "did you mean 'redact'"),
    "a part that is not there": ("c STRUCT<zip: STRING>", "'orc.encrypt' = 'pii:c.zap'", "c.zip"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_create_table_refuses_what_java_would_write_wrong(
    spark: SparkSession, table: Named, case: str
) -> None:
    column, option, reason = REFUSED[case]
    options = option if "encrypt" in option else f"'orc.encrypt' = 'pii:c', {option}"
    for statement in (
        "(id INT, {}) TBLPROPERTIES ({})",
        "TBLPROPERTIES ({1}) AS SELECT 1 AS id, CAST(NULL AS {0}) AS c",
    ):
        wanted = column if statement.startswith("(") else column.removeprefix("c ")
        if "VARCHAR" in column and " AS " in statement:
            continue  # Spark makes a STRING of it
        with pytest.raises(Exception, match=reason):
            spark.sql(f"CREATE TABLE {table('t')} {statement.format(wanted, options)}")


def test_alter_table_refuses_them_too(blind: Lake, spark: SparkSession, table: Named) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id INT, c VARCHAR(10)) TBLPROPERTIES ('orc.encrypt' = 'pii:c')")
    with pytest.raises(Exception, match="64 characters"):
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('orc.mask' = 'sha256:c')")
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('orc.mask' = 'redact:c')")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'Ab1')")
    assert blind.table(name.removeprefix("lake.")).collect() == [(1, "Xx9")]


def test_python_refuses_for_tables_what_spark_could_not_write(
    lake: Lake, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockgate.framework.plugins.manager import PluginManager

    schema = pa.schema([("id", pa.int32()), ("c", pa.string())])
    same = {"first": lambda parameters: lambda values: pa.nulls(len(values), values.type)}
    monkeypatch.setattr(PluginManager, "masks", lambda self: same)
    made = Schema.from_arrow(schema, options={"orc.encrypt": "pii:c", "orc.mask": "first:c"})
    with pytest.raises(
        UnsupportedError, match=r"'first'.*Java, which has no masks of Python plugins.*redact"
    ):
        lake.catalog.create_table(f"{database}.t", made)
    keys = pa.schema([("id", pa.int32()), ("m", pa.map_(pa.int32(), pa.string()))])
    made = Schema.from_arrow(keys, options={"orc.encrypt": "pii:m._key"})
    with pytest.raises(OptionError, match="never null"):
        lake.catalog.create_table(f"{database}.t", made)


def test_a_session_s_bloom_filters_do_not_reveal_values(
    lake: Lake, spark: SparkSession, table: Named
) -> None:
    """ORC's Java writes the Bloom filter of an encrypted column in the clear, so such a column has none."""
    spark.sql("SET orc.bloom.filter.columns = ssn,open")
    spark.sql("SET orc.encrypt = other:open")
    try:
        for options, filters in (("'orc.encrypt' = 'pii:ssn'", 0), ("'comment' = 'plain'", 2)):
            name = table(f"t{filters}")
            spark.sql(f"CREATE TABLE {name} (ssn STRING, open STRING) TBLPROPERTIES ({options})")
            spark.sql(f"INSERT INTO {name} SELECT concat('s', id), concat('o', id) FROM range(0, 100, 1, 1)")
            (path,) = _files(lake, name)
            source = open_source(path, None)
            tail = read_tail(source)
            stripe = read_stripe(source, tail, 0)
            source.close()
            blooms = [stream for stream in stripe.streams if stream.kind == StreamKind.BLOOM_FILTER_UTF8]
            assert len(blooms) == filters
            assert len(tail.footer.encryption.variants) == (0 if filters else 1)
    finally:
        spark.sql("RESET orc.bloom.filter.columns")
        spark.sql("RESET orc.encrypt")

"""What the connector computes as Python does: it runs the vectors that Python's own tests run."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cache_folders import cache_folder_cases
from messages import answer

from lockgate.framework.orc import write_table
from lockgate.framework.store.rows.file_statistics import StatsMode
from lockgate.framework.types import parse_type, to_arrow, to_spark_type, value_from_json
from lockgate.pushdown import from_json, to_arrow_expression

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from lockgate import Lake

FIXTURES = Path(__file__).parents[1] / "fixtures"


def vectors(folder: str) -> list[Any]:
    return [pytest.param(path, id=path.stem) for path in sorted((FIXTURES / folder).glob("*.json"))]


def with_spark_types(columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The columns, or cases, of a vector, each with its type as Spark spells it."""
    return [{**each, "spark": to_spark_type(parse_type(each["type"]))} for each in columns]


def load(path: Path) -> dict[str, Any]:
    vector: dict[str, Any] = json.loads(path.read_text())
    return {**vector, "columns": with_spark_types(vector["columns"])}


def lookup_twins(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm.io.lockgate.spark.lookup.LookupTwins


def test_numbers_of_kinds_of_lineage(spark: SparkSession) -> None:
    twins: Any = spark.sparkContext._jvm.io.lockgate.spark.lineage.LineageTwins
    assert json.loads(twins.kinds()) == json.loads((FIXTURES / "lineage_kinds.json").read_text())


def test_words_of_texts(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm
    words = jvm.io.lockgate.spark.files.WordMatch.words
    for case in json.loads((FIXTURES / "words.json").read_text()):
        assert sorted(words(case["text"])) == sorted(case["words"]), case


def test_letters_of_scripts_without_blanks(spark: SparkSession) -> None:
    """The twin of `tests/pushdown/texts/test_unspaced.py`."""
    jvm: Any = spark.sparkContext._jvm
    letters = jvm.io.lockgate.spark.files.UnspacedLetters
    vectors = json.loads((FIXTURES / "unspaced_letters.json").read_text())
    ranges = vectors["unspaced"]
    assert list(letters.ranges()) == [number for each in ranges for number in each]
    assert list(letters.agreedRanges()) == [number for each in vectors["agreed"] for number in each]
    for first, last, longest in ranges:
        for letter in (first, (first + last) // 2, last):
            assert (letters.has(letter), letters.longestPiece(letter)) == (True, longest), hex(letter)
    for first, last in vectors["agreed"]:
        assert all(letters.isAgreedOn(each) and not letters.has(each) for each in (first, last)), hex(first)
    ends = {each for first, last, _ in ranges for each in (first - 1, last + 1)} | {0, 0x10FFFF}
    for letter in ends:
        assert letters.has(letter) is any(first <= letter <= last for first, last, _ in ranges), hex(letter)


def test_texts_of_columns_of_lineage(spark: SparkSession) -> None:
    twins: Any = spark.sparkContext._jvm.io.lockgate.spark.lineage.LineageTwins
    cases = json.loads((FIXTURES / "lineage_columns.json").read_text())
    assert [twins.columnText(json.dumps(each["path"])) for each in cases] == [each["text"] for each in cases]


def test_faults_of_messages(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm
    parse, shapes = jvm.io.lockgate.spark.bridge.Bridge.JSON.readTree, jvm.io.lockgate.spark.bridge.Shapes
    cases = json.loads((FIXTURES / "bridge_messages" / "faults.json").read_text())["cases"]
    for case in cases:
        found = shapes.fault(parse(json.dumps(case["shape"])), parse(json.dumps(case["value"])), "")
        assert found == case["fault"], case


def test_versions_of_caches(spark: SparkSession) -> None:
    wanted = json.loads((FIXTURES / "cache_versions.json").read_text())
    assert json.loads(lookup_twins(spark).versions()) == wanted


def test_folders_of_caches(spark: SparkSession, tmp_path: Path) -> None:
    cases = cache_folder_cases(tmp_path)
    found = json.loads(lookup_twins(spark).folders(json.dumps(cases)))
    for case, each in zip(cases, found, strict=True):
        shown = {key: value.partition(": write")[0] for key, value in each.items()}
        assert shown == {key: case[key] for key in ("folder", "error") if key in case}, case["name"]


def test_values_in_messages(spark: SparkSession) -> None:
    cases = json.loads((FIXTURES / "json_values.json").read_text())
    twins: Any = spark.sparkContext._jvm.io.lockgate.spark.bridge.ValueTwins
    found = json.loads(twins.values(json.dumps(with_spark_types(cases))))
    for case, each in zip(cases, found, strict=True):
        # The JSON tells the two zeros apart, and numbers from booleans.
        assert json.dumps(each["values"]) == json.dumps(case["values"]), case["type"]
        assert each["texts"] == case.get("texts", []), case["type"]
        assert each["taken"] == [], case["type"]


def test_headers_of_frames(spark: SparkSession) -> None:
    vector = json.loads((FIXTURES / "bridge_frames.json").read_text())
    twins: Any = spark.sparkContext._jvm.io.lockgate.spark.bridge.FrameTwins
    headers = [each["header"] for each in vector["frames"]]
    assert json.loads(twins.written(json.dumps(vector["frames"]))) == headers
    read = json.loads(twins.read(json.dumps([*headers, *vector["refused"]])))
    expected = [{"inline": each["inline"], "length": each["length"]} for each in vector["frames"]]
    assert read == [*expected, *[None] * len(vector["refused"])]


def test_times_in_files(spark: SparkSession) -> None:
    vector = json.loads((FIXTURES / "orc_times.json").read_text())
    twins: Any = spark.sparkContext._jvm.io.lockgate.spark.files.FileTwins
    found = json.loads(twins.times(json.dumps([*vector["held"], *vector["refused"]])))
    assert found == [*vector["held"], *[None] * len(vector["refused"])]


def test_buckets_of_rows(spark: SparkSession) -> None:
    cases = json.loads((FIXTURES / "buckets.json").read_text())
    asked = [{**case, "spark": [to_spark_type(parse_type(kind)) for kind in case["types"]]} for case in cases]
    twins: Any = spark.sparkContext._jvm.io.lockgate.spark.files.FileTwins
    for case, each in zip(cases, json.loads(twins.buckets(json.dumps(asked), 7)), strict=True):
        assert each["hashes"] == case["hashes"], case["name"]
        assert each["buckets"] == [int(abs(math.fmod(value, 7))) for value in case["hashes"]], case["name"]


def test_types_in_files(spark: SparkSession) -> None:
    cases = json.loads((FIXTURES / "orc_types.json").read_text())
    asked = [{**case, "spark": to_spark_type(parse_type(case["type"]), field_ids=True)} for case in cases]
    twins: Any = spark.sparkContext._jvm.io.lockgate.spark.files.FileTwins
    for case, found in zip(cases, json.loads(twins.types(json.dumps(asked))), strict=True):
        assert found == case["columns"], case["name"]


def read_as_altered(
    spark: SparkSession, cases: list[dict[str, Any]], rows: list[list[Any]], file: Path
) -> list[list[Any]]:
    """Write a file with a column for each case, and read it with the types that they were altered to."""
    fields = {
        f"c{number}": (parse_type(case["from"]), parse_type(case["to"])) for number, case in enumerate(cases)
    }
    columns = {
        name: pa.array([value_from_json(old, row[number]) for row in rows], to_arrow(old))
        for number, (name, (old, _)) in enumerate(fields.items())
    }
    if file.suffix == ".parquet":
        pq.write_table(pa.table(columns), file, store_decimal_as_integer=True)
    else:
        write_table(pa.table(columns), str(file))

    def described(place: int) -> list[dict[str, Any]]:
        return [
            {"id": number, "name": name, "type": to_spark_type(types[place])}
            for number, (name, types) in enumerate(fields.items())
        ]

    # Spark's rows have no lengths of texts.
    types = {name: "string" if new.is_string else to_spark_type(new) for name, (_, new) in fields.items()}
    wanted = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in types.items()]
    text = json.dumps({"type": "struct", "fields": wanted})
    plan = {
        "schema_id": 1,
        "schemas": {"0": described(0), "1": described(1)},
        "integrity": "ignore",
        "splits": [
            {
                "partition": {},
                "bucket": 0,
                "merge": False,
                "files": [{"path": file.as_uri(), "size": file.stat().st_size, "schema_id": 0}],
            }
        ],
    }
    reader: Any = spark.sparkContext._jvm.io.lockgate.spark.merge.Conformance
    message = json.dumps(answer("scan.plan", plan))
    rows: list[list[Any]] = json.loads(reader.read(spark._jsparkSession, text, text, message))
    return rows


REFUSED = r"CAST_OVERFLOW|NUMERIC_VALUE_OUT_OF_RANGE|cannot be read as"


@pytest.mark.parametrize("file_format", ["orc", "parquet"])
def test_values_of_altered_columns(spark: SparkSession, tmp_path: Path, file_format: str) -> None:
    cases = json.loads((FIXTURES / "altered_types.json").read_text())
    longest = max(len(case["values"]) for case in cases)

    def by_row(name: str) -> list[list[Any]]:
        return [[(case[name] + [None] * longest)[row] for case in cases] for row in range(longest)]

    found = read_as_altered(spark, cases, by_row("values"), tmp_path / f"all.{file_format}")
    for number, (case, values) in enumerate(zip(cases, zip(*by_row("become"), strict=True), strict=True)):
        assert json.dumps([row[number] for row in found]) == json.dumps(values), case
    refused = [(case, value) for case in cases for value in case.get("refused", [])]
    for number, (case, value) in enumerate(refused):
        with pytest.raises(Exception, match=REFUSED):
            read_as_altered(spark, [case], [[value]], tmp_path / f"{number}.{file_format}")


def test_filters_do_not_judge_columns_that_are_cast(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "texts.orc"
    write_table(pa.table({"v": ["9", "95", "900"]}), str(file))
    field = {"name": "v", "type": "integer", "nullable": True, "metadata": {}}
    schema = json.dumps({"type": "struct", "fields": [field]})
    # Among texts, 10 is less than all of these.
    asked = [
        {"op": ">", "args": [{"col": ["v"]}, {"value": value, "type": "integer"}]} for value in (10, 901)
    ]
    conformance: Any = spark.sparkContext._jvm.io.lockgate.spark.merge.Conformance
    read = conformance.rowsRead(schema, file.as_uri(), file.stat().st_size, json.dumps(asked))
    assert json.loads(read) == [3, 3]


def test_masks_of_values(spark: SparkSession) -> None:
    cases = json.loads((FIXTURES / "masks.json").read_text())
    twins: Any = spark.sparkContext._jvm.io.lockgate.spark.files.masks.MaskTwins
    found = json.loads(twins.masks(json.dumps(with_spark_types(cases))))
    for case, each in zip(cases, found, strict=True):
        assert json.dumps(each) == json.dumps(case["masked"]), (
            case["type"],
            case["mask"],
            case["parameters"],
        )


def test_codes_of_granules(spark: SparkSession) -> None:
    vector = json.loads((FIXTURES / "integrity" / "granules.json").read_text())
    twins: Any = spark.sparkContext._jvm.io.lockgate.spark.integrity.IntegrityTwins
    found = json.loads(twins.granules(json.dumps(vector)))
    assert found.pop("matches") == [[True, False, False]] * len(vector["tags"])
    assert found.pop("other_name") is False
    assert found == {name: vector[name] for name in found}


@pytest.mark.parametrize("path", vectors("row_codec"))
def test_cached_rows(spark: SparkSession, path: Path) -> None:
    vector = load(path)
    decoded = json.loads(lookup_twins(spark).decode(json.dumps(vector)))
    assert repr(decoded) == repr(vector["rows"])  # repr tells the two zeros apart


@pytest.mark.parametrize("path", vectors("key_codec"))
def test_keys_of_lookups(spark: SparkSession, path: Path) -> None:
    vector = load(path)
    assert json.loads(lookup_twins(spark).keys(json.dumps(vector))) == vector["keys"]


@pytest.mark.parametrize("path", vectors("cache_layers"))
def test_layers_of_caches(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    vector = load(path)
    vector["keys"] = with_spark_types(vector["keys"])
    for layer in vector["layers"]:
        for part, written in layer["files"].items():
            (tmp_path / f"{layer['name']}.{part}").write_bytes(bytes.fromhex(written))
    (tmp_path / "LAYERS.json").write_text(json.dumps({"layers": [each["name"] for each in vector["layers"]]}))
    found = json.loads(lookup_twins(spark).layers(json.dumps(vector), str(tmp_path)))
    assert found == vector["found"]


def test_folders_of_partitions(spark: SparkSession) -> None:
    cases = json.loads((FIXTURES / "partition_folders" / "folders.json").read_text())
    # Spark has no type for TIME, so the connector never writes such a partition.
    cases = [
        {**case, "precision": parse_type(case["type"]).precision}
        for case in cases
        if not case["type"].startswith("TIME(")
    ]
    conformance: Any = spark.sparkContext._jvm.io.lockgate.spark.merge.Conformance
    folders = json.loads(conformance.partitionFolders(json.dumps(with_spark_types(cases))))
    assert folders == [case["folder"] for case in cases]


def test_statistics_of_columns(spark: SparkSession, tmp_path: Path) -> None:
    """Bounds may be unknown where ORC keeps none; those that are there are Python's."""
    cases = json.loads((FIXTURES / "statistics" / "columns.json").read_text())
    asked = []
    for case in with_spark_types(cases):
        mode = StatsMode.parse(case["mode"])
        kept = {"bounds": mode.bounds, "length": mode.length} if mode.counts else None
        asked.append({"spark": case["spark"], "kept": kept, "values": [[value] for value in case["values"]]})
    conformance: Any = spark.sparkContext._jvm.io.lockgate.spark.merge.Conformance
    found = json.loads(conformance.statistics(spark._jsparkSession, json.dumps(asked), str(tmp_path)))
    for case, each in zip(cases, found, strict=True):
        if case["mode"] == "none":
            assert each is None
            continue
        expected = case | case.get("orc", {})
        names = ("min", "max", "nulls")
        assert repr([each[name] for name in names]) == repr([expected[name] for name in names]), case["name"]


def test_modes_of_statistics_hold_for_rows_that_spark_writes(
    lake: Lake, spark: SparkSession, table: Callable[[str], str]
) -> None:
    name = table("t")
    options = {"metadata.stats-mode": "truncate(3)"}
    options |= {f"fields.{mode}.stats-mode": mode for mode in ("full", "counts", "none")}
    texts = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    spark.sql(
        f"CREATE TABLE {name} (cut STRING, full STRING, counts STRING, none STRING) TBLPROPERTIES ({texts})"
    )
    long = "x" * 40
    spark.sql(f"INSERT INTO {name} VALUES ('{long}', '{long}', '{long}', '{long}')")
    store = lake.catalog.load_table(name.removeprefix("lake."))
    store.append(store.read())
    by_spark, by_python = (entry.file for entry in store.manifests.live_files(store.latest_snapshot()))
    assert by_spark.value_stats_cols == by_python.value_stats_cols == ("cut", "full", "counts")
    assert by_spark.value_stats == by_python.value_stats
    assert by_spark.value_stats.max == ("xxy", long, None)


# Parquet's statistics say nothing of NaN, and timestamps and wide decimals are not compared.
NOT_IN_PARQUET = {"decimal_30_10", "double", "float", "timestamp_6"}


@pytest.mark.parametrize("file_format", ["orc", "parquet"])
@pytest.mark.parametrize("path", vectors("pruning"))
def test_files_left_out_by_statistics(
    spark: SparkSession, path: Path, tmp_path: Path, file_format: str
) -> None:
    vector = json.loads(path.read_text())
    kind = parse_type(vector["type"])
    field = {"name": "v", "type": to_spark_type(kind), "nullable": True, "metadata": {}}
    schema = json.dumps({"type": "struct", "fields": [field]})
    asked = [case["predicate"] for case in vector["asked"]]
    jvm: Any = spark.sparkContext._jvm
    in_parquet = jvm.io.lockgate.spark.read.ParquetTwins
    reader = in_parquet if file_format == "parquet" else jvm.io.lockgate.spark.merge.Conformance
    left_out = 0
    for number, values in enumerate(vector["files"]):
        file = tmp_path / f"{number}.{file_format}"
        rows = pa.table({"v": pa.array([value_from_json(kind, value) for value in values], to_arrow(kind))})
        if file_format == "parquet":
            pq.write_table(rows, file, store_decimal_as_integer=True)
        else:
            write_table(rows, str(file))
        read = reader.rowsRead(schema, file.as_uri(), file.stat().st_size, json.dumps(asked))
        for node, count in zip(asked, json.loads(read), strict=True):
            predicate = from_json(node)
            assert predicate is not None
            assert count >= rows.filter(to_arrow_expression(predicate, rows.schema)).num_rows, (node, values)
            left_out += count == 0
    assert (left_out > 0) == (file_format == "orc" or path.stem not in NOT_IN_PARQUET)


def test_a_list_of_values_is_searched_for_references_by_nobody(spark: SparkSession) -> None:
    """Spark walks over all values to answer; asked once for each of them, a list took quadratic time."""
    jvm: Any = spark.sparkContext._jvm
    assert jvm.io.lockgate.spark.read.SearchArgumentCases.referencesSought(500) == 0


def test_deletion_vectors(spark: SparkSession) -> None:
    cases = json.loads((FIXTURES / "vectors" / "deletion_vectors.json").read_text())["cases"]
    twins: Any = spark.sparkContext._jvm.io.lockgate.spark.files.VectorTwins
    for case in cases:
        found = twins.decode(case["bytes"], case["rows"], case.get("positions", []))
        if "error" in case:
            assert found.startswith("the vector is "), (case["name"], found)
            assert case["error"] in found, (case["name"], found)
        else:
            assert found == "equal", case["name"]


def test_rows_that_a_deletion_vector_leaves(spark: SparkSession) -> None:
    twins: Any = spark.sparkContext._jvm.io.lockgate.spark.files.VectorTwins
    for name in ("Paimon's of dv_append_32, snapshot 004, 3 rows", "beyond 32 bits"):
        cases = json.loads((FIXTURES / "vectors" / "deletion_vectors.json").read_text())["cases"]
        (case,) = (each for each in cases if each["name"] == name)
        for first, count in ((0, 10), (2, 4), (9, 1), (2**32 - 3, 6)):
            kept = json.loads(twins.kept(case["bytes"], case["rows"], first, count))
            assert kept == [row for row in range(count) if first + row not in case["positions"]]

"""Integrity tags through Spark: made on writing, checked on reading, in both directions with Python's."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.orc
import pytest
from messages import answer
from tagged_tables import assert_verified, data_files

from lockgate.errors import IntegrityError
from lockgate.framework.keys import KeyProvider, MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile, verify_file, write_table
from lockgate.framework.orc.integrity.header import ATTRIBUTE
from lockgate.framework.orc.integrity.tag_maker import remove_tags
from lockgate.framework.spark.bridge.dispatcher import dispatcher

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]

FIXTURES = Path(__file__).parents[1] / "fixtures" / "integrity"
KEYS = MemoryKeyProvider({"pii@0": bytes(range(16)), "fin@0": bytes(range(32))})
# Thrown in tasks, so Spark's exception holds the message.
DAMAGED = r"IntegrityError|CorruptFileError|WrongKeyError"


class Reader:
    """Reads single files as the connector's tasks do, without a query."""

    def __init__(self, spark: SparkSession, **columns: str) -> None:
        self._spark = spark
        fields = [
            {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns.items()
        ]
        self._type = json.dumps({"type": "struct", "fields": fields})
        self._fields = [
            {"id": number, "name": name, "type": kind} for number, (name, kind) in enumerate(columns.items())
        ]

    def rows(
        self, path: Path, keys: KeyProvider | None = KEYS, mode: str = "require", size: int | None = None
    ) -> list[list[Any]]:
        """All rows; `size` is the file's as a table's metadata would tell it."""
        file = {"path": path.as_uri(), "size": path.stat().st_size if size is None else size, "schema_id": 0}
        plan: dict[str, Any] = {
            "schemas": {"0": self._fields},
            "splits": [{"partition": {}, "bucket": 0, "merge": False, "files": [file]}],
            "integrity": mode,
        }
        if keys is not None:
            plan["key_scope"] = dispatcher().scopes.register(keys)
        jvm: Any = self._spark.sparkContext._jvm
        conformance = jvm.io.lockgate.spark.merge.Conformance
        read = conformance.read(
            self._spark._jsparkSession, self._type, self._type, json.dumps(answer("scan.plan", plan))
        )
        return json.loads(read)  # type: ignore[no-any-return]  # JSON


@pytest.fixture
def reader(spark: SparkSession) -> Reader:
    """A reader of the columns of `people`."""
    return Reader(spark, id="long", ssn="string", salary="double", city="string")


def people(rows: int = 3000) -> pa.Table:
    """Rows of which two columns are to be encrypted."""
    numbers = random.Random(7).sample(range(10**9), rows)
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "ssn": [f"ssn-{number}" for number in numbers],
            "salary": [number / 7 for number in numbers],
            "city": [f"city {number % 50}" for number in numbers],
        }
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of `people` in several stripes, written by Python."""
    path = tmp_path_factory.mktemp("integrity") / "people.orc"
    write_table(
        people(), path, encrypt="pii:ssn;fin:salary", keys=KEYS, compression="zstd", stripe_size=16_384
    )
    assert verify_file(path, keys=KEYS).stripes > 1
    return path


def expected() -> list[list[Any]]:
    """The rows of `people` as `Reader` gives them."""
    return [list(row.values()) for row in people().to_pylist()]


# --- tags that Spark checks ------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["zstd", "none"])
def test_the_published_files_are_verified(spark: SparkSession, codec: str) -> None:
    facts = json.loads((FIXTURES / f"people-{codec}.json").read_text())
    keys = MemoryKeyProvider({name: bytes.fromhex(key) for name, key in facts["master_keys"].items()})
    found = Reader(spark, id="long", ssn="string", salary="integer", none="string").rows(
        FIXTURES / f"people-{codec}.orc", keys
    )
    assert len(found) == facts["rows"]
    assert found[0][1] == facts["ssn_0"]
    assert sum(row[2] for row in found if row[2] is not None) == facts["salary_sum"]


def attempt(reader: Reader, path: Path) -> tuple[list[list[Any]] | None, str]:
    """The rows of a file, or what was said instead."""
    try:
        return reader.rows(path), ""
    except Exception as error:
        return None, str(error)


@pytest.mark.long
def test_no_flipped_bit_reaches_a_row(reader: Reader, file: Path, tmp_path: Path) -> None:
    assert reader.rows(file) == expected()
    stored, copy, reported = file.read_bytes(), tmp_path / "copy.orc", 0
    for seed in range(80):
        dice = random.Random(seed)
        changed = bytearray(stored)
        for _ in range(dice.choice((1, 1, 1, 2, 8))):
            changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
        copy.write_bytes(changed)
        found, message = attempt(reader, copy)
        if found is None:
            assert re.search(rf"({DAMAGED}): .*copy\.orc", message), (seed, message)
            reported += 1
        else:
            # What was changed was not read: a mask or an index.
            assert found == expected(), seed
            assert verify_file(copy, keys=KEYS).damage, seed
    assert reported > 40


def test_a_flipped_bit_fails_the_query(lake: Lake, spark: SparkSession, table: Named) -> None:
    name = table("flipped")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, ssn STRING) TBLPROPERTIES ('orc.encrypt' = 'pii:ssn')")
    spark.sql(f"INSERT INTO {name} SELECT id, concat('s', id) FROM range(0, 5000, 1, 1)")
    (path,) = assert_verified(lake, name)
    stored = bytearray(path.read_bytes())
    # Index streams lie at the front, the tail at the end: this is data, of `id` or of `ssn`.
    stored[len(stored) // 2] ^= 4
    path.write_bytes(stored)
    message = (
        r"IntegrityError: file:.*\.orc: the bytes from \d+ to \d+ \(stream \d+ of stripe 0\) do not match"
    )
    with pytest.raises(Exception, match=message):
        spark.sql(f"SELECT max(id), max(ssn) FROM {name}").collect()
    with pytest.raises(Exception, match=message):
        spark.sql(f"CREATE TABLE {table('taken')} AS SELECT * FROM {name}")


def test_only_the_granules_read_are_checked(lake: Lake, spark: SparkSession, table: Named) -> None:
    name = table("sought")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, ssn STRING) "
        "TBLPROPERTIES ('orc.encrypt' = 'pii:ssn', 'orc.compress' = 'none')"
    )
    spark.sql(f"INSERT INTO {name} SELECT id, repeat(sha2(string(id), 512), 2) FROM range(0, 60000, 1, 1)")
    (path,) = assert_verified(lake, name)
    stored = bytearray(path.read_bytes())
    stored[len(stored) // 2] ^= 1
    path.write_bytes(stored)
    for number in (10, 59_990):
        found = spark.sql(f"SELECT length(ssn) FROM {name} WHERE id = {number}").collect()
        assert found == [(256,)]
    with pytest.raises(Exception, match="IntegrityError"):
        spark.sql(f"SELECT max(ssn) FROM {name}").collect()


def test_truncated_and_lengthened_files(reader: Reader, file: Path, tmp_path: Path) -> None:
    stored, copy = file.read_bytes(), tmp_path / "copy.orc"
    for length in (1, 3, 20, 1000, len(stored) // 2, len(stored) - 1):
        copy.write_bytes(stored[:length])
        for size in (length, len(stored)):
            with pytest.raises(Exception, match=DAMAGED):
                reader.rows(copy, size=size)
    copy.write_bytes(stored + stored[-100:])
    with pytest.raises(Exception, match=DAMAGED):
        reader.rows(copy)
    # The table's metadata says where the file ends: what was appended is not looked at.
    assert reader.rows(copy, size=len(stored)) == expected()


def test_parts_moved_within_and_between_files(reader: Reader, file: Path, tmp_path: Path) -> None:
    other, copy = tmp_path / "other.orc", tmp_path / "copy.orc"
    write_table(
        people(), other, encrypt="pii:ssn;fin:salary", keys=KEYS, compression="zstd", stripe_size=16_384
    )
    assert reader.rows(other) == expected()
    mine, theirs = file.read_bytes(), other.read_bytes()
    with EncryptedOrcFile(file, keys=KEYS) as opened:
        first, second = opened._tail.footer.stripes[:2]
        content = opened._tail.footer.content_length
    first_end = first.offset + first.index_length + first.data_length + first.footer_length
    middle = first.offset + first.index_length + first.data_length // 2
    moved = {
        "the end of another file": mine[:content] + theirs[content:],
        "a stripe of another file": theirs[:first_end] + mine[first_end:],
        "bytes of the second stripe in the first": mine[:middle]
        + mine[middle + second.offset - first.offset :][:200]
        + mine[middle + 200 :],
    }
    for changed in moved.values():
        copy.write_bytes(changed)
        with pytest.raises(Exception, match=DAMAGED):
            reader.rows(copy)


def test_another_files_content_in_its_place(lake: Lake, spark: SparkSession, table: Named) -> None:
    name = table("swapped")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, ssn STRING) TBLPROPERTIES ('orc.encrypt' = 'pii:ssn')")
    for rows in (1000, 3000):
        spark.sql(f"INSERT INTO {name} SELECT id, concat('s', id) FROM range(0, {rows}, 1, 1)")
    one, two = data_files(lake, name)
    kept = one.read_bytes()
    shutil.copy(two, one)
    two.write_bytes(kept)
    with pytest.raises(Exception, match=DAMAGED):
        spark.sql(f"SELECT count(ssn), sum(id) FROM {name}").collect()


# --- what is asked of files ------------------------------------------------------------------------


def stripped(file: Path, target: Path, *, attribute: bool, items: bool) -> Path:
    """A copy of a file whose footer lost its tags, or a part of them."""
    from lockgate.framework.orc.format.chunks import frame
    from lockgate.framework.orc.format.tail import read_tail
    from lockgate.framework.orc.sources.file_source import open_source

    source = open_source(file)
    tail = read_tail(source)
    source.close()
    footer, kept = tail.footer, list(tail.footer.metadata)
    if attribute and items:
        remove_tags(footer)
    elif attribute:
        del footer.types[0].attributes[:]
    else:
        del footer.metadata[:]
        footer.metadata.extend(item for item in kept if item.name != ATTRIBUTE)
    stored = file.read_bytes()
    content = frame(tail.codec, footer.SerializeToString(), tail.block_size)
    postscript = tail.postscript
    before = stored[: len(stored) - 1 - stored[-1] - postscript.footer_length]
    postscript.footer_length = len(content)
    ending = postscript.SerializeToString()
    target.write_bytes(before + content + ending + bytes([len(ending)]))
    return target


def test_files_without_tags(reader: Reader, file: Path, tmp_path: Path) -> None:
    bare = stripped(file, tmp_path / "bare.orc", attribute=True, items=True)
    assert reader.rows(bare, mode="verify") == expected()
    assert reader.rows(bare, mode="ignore") == expected()
    with pytest.raises(Exception, match=r"IntegrityError: .*bare.orc: .*no integrity tags.*orc\.integrity"):
        reader.rows(bare, mode="require")


@pytest.mark.parametrize("attribute", [True, False])
def test_files_that_lost_a_part_of_their_tags(
    reader: Reader, file: Path, tmp_path: Path, attribute: bool
) -> None:
    bare = stripped(file, tmp_path / "bare.orc", attribute=attribute, items=not attribute)
    for keys in (KEYS, None):
        with pytest.raises(Exception, match=r"IntegrityError: .*damaged or stripped"):
            reader.rows(bare, keys, mode="verify")
    assert reader.rows(bare, mode="ignore") == expected()
    with pytest.raises(IntegrityError):
        EncryptedOrcFile(bare, keys=KEYS)


def test_without_a_key_masks_are_read_unverified(reader: Reader, file: Path) -> None:
    masked = [[number, None, None, city] for number, _, _, city in expected()]
    assert reader.rows(file, None, mode="verify") == masked
    assert reader.rows(file, MemoryKeyProvider({"else@0": bytes(16)}), mode="verify") == masked
    with pytest.raises(Exception, match=r"IntegrityError: .*none of the keys"):
        reader.rows(file, None, mode="require")


def test_one_key_of_two_verifies_the_whole_file(reader: Reader, file: Path, tmp_path: Path) -> None:
    for name in ("pii@0", "fin@0"):
        keys = MemoryKeyProvider({name: _bytes(name)})
        rows = reader.rows(file, keys)
        assert [row[1] is None for row in rows[:1]] == [name == "fin@0"]
        assert [row[2] is None for row in rows[:1]] == [name == "pii@0"]
    wrong = MemoryKeyProvider({"pii@0": bytes(16), "fin@0": bytes(32)})
    for mode in ("require", "verify"):
        with pytest.raises(Exception, match="WrongKeyError"):
            reader.rows(file, wrong, mode=mode)


def _bytes(name: str) -> bytes:
    return {"pii@0": bytes(range(16)), "fin@0": bytes(range(32))}[name]


def test_plain_files_and_empty_files(reader: Reader, tmp_path: Path) -> None:
    plain, empty = tmp_path / "plain.orc", tmp_path / "empty.orc"
    pa.orc.write_table(people(), plain)
    assert reader.rows(plain) == reader.rows(plain, None) == expected()
    write_table(people().slice(0, 0), empty, encrypt="pii:ssn", keys=KEYS)
    assert reader.rows(empty) == []
    stored = bytearray(empty.read_bytes())
    stored[-60] ^= 1
    empty.write_bytes(stored)
    with pytest.raises(Exception, match=DAMAGED):
        reader.rows(empty)

"""Keys that Spark's tasks collect make the segment that rows of the file make; lies are refused."""

from __future__ import annotations

import json
import os
import random
import struct
import time
import zlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from lockgate.errors import InputError
from lockgate.framework.index.database.collected_keys import MAGIC, blocks_of, read_keys
from lockgate.framework.index.database.segment_collector import SegmentCollector, part_name
from lockgate.framework.plugins import TaskCollector, plugins
from lockgate.framework.store import Catalog, Schema
from lockgate.framework.store.maintenance.orphans import remove_orphan_files
from lockgate.framework.store.schema.schema import now_millis
from lockgate.framework.types import parse_type, to_arrow, value_from_json
from lockgate.pushdown.index.ordered import distinct
from lockgate.pushdown.index.segment import segment_of

VECTORS = json.loads((Path(__file__).parents[2] / "fixtures" / "index_keys.json").read_text())


def run(block: int, keys: Sequence[int], width: int = 5) -> bytes:
    gaps = [after - before for before, after in pairwise(keys)]
    head = struct.pack("<IIBQ", block, len(keys), width, keys[0])
    return head + b"".join(gap.to_bytes(width, "little") for gap in gaps)


def blocks(numbers: Sequence[int], count: int) -> bytes:
    return sum(1 << number for number in numbers).to_bytes((count + 7) // 8, "little")


def column(runs: Sequence[bytes], nulls: Sequence[int], values: Sequence[int], count: int) -> bytes:
    return (
        b"\1" + struct.pack("<I", len(runs)) + blocks(nulls, count) + blocks(values, count) + b"".join(runs)
    )


def summed(content: bytes) -> bytes:
    return content + struct.pack("<I", zlib.crc32(content))


def written(rows: int, block_rows: int, columns: Sequence[bytes]) -> bytes:
    """The bytes of the keys of a file, as a task writes them."""
    return summed(struct.pack("<8sQQI", MAGIC, rows, block_rows, len(columns)) + b"".join(columns))


@pytest.mark.parametrize(
    "case", VECTORS, ids=lambda case: f"{case['type']} {case['kind']} {case['block_rows']}"
)
def test_the_keys_of_values(case: Mapping[str, Any]) -> None:
    """The vectors that the connector's twin runs."""
    data_type = parse_type(case["type"])
    size = case["block_rows"]
    for number, wanted in enumerate(case["keys"]):
        rows = case["rows"][number * size : (number + 1) * size]
        values = pa.array(
            [value_from_json(data_type, row) for row in rows if row is not None], to_arrow(data_type)
        )
        found = plugins().index_kinds()[case["kind"]].keys(values, data_type) if len(values) else []
        assert list(distinct(np.array(found, np.uint64))) == wanted
        assert (None in rows) == (number in case["nulls"])
        assert bool(len(values)) == (number in case["valued"])


COLUMNS = pa.schema(
    [("id", pa.int64()), ("host", pa.string()), ("text", pa.string()), ("at", pa.timestamp("us"))]
)
OPTIONS = {
    "index.values.columns": "id,host,at",
    "index.bloom.columns": "host",
    "index.ngrams.columns": "text",
    "index.words.columns": "text,host",
    "index.block-rows": "40",
}


def some_rows(count: int, seed: int) -> pa.Table:
    chance = random.Random(seed)
    texts = ["Run Tool.exe /q", "İstanbul ſ 10", "", "投标 文件", "deadbeef00"]
    return pa.table(
        {
            "id": [chance.choice([None, chance.randrange(50)]) for _ in range(count)],
            "host": [chance.choice([None, f"host-{chance.randrange(9)}"]) for _ in range(count)],
            "text": [chance.choice([None, *texts]) for _ in range(count)],
            "at": [chance.choice([None, -1_000_000, 10**15]) for _ in range(count)],
        }
    ).cast(COLUMNS)


def task_bytes(collector: SegmentCollector, rows: pa.Table, left_out: Sequence[str] = ()) -> bytes:
    """What a task sends of rows, by the kinds themselves, in runs that need not be whole."""
    asked = collector.task_keys()
    assert asked is not None
    kinds, fields = plugins().index_kinds(), {each.field.name: each.field for each in collector.indexed}
    count = blocks_of(rows.num_rows, asked.block_rows)
    columns = []
    for each in asked.columns:
        if each.column in left_out:
            columns.append(b"\0")
            continue
        runs, nulls, values = [], [], []
        for block in range(count):
            part = rows[each.column].slice(block * asked.block_rows, asked.block_rows).combine_chunks()
            nulls += [block] if part.null_count else []
            if part.null_count < len(part):
                values.append(block)
                keys = distinct(kinds[each.kind].keys(part.drop_null(), fields[each.column].type)).tolist()
                runs += (
                    [run(block, keys[::2])] + ([run(block, keys[1:])] if len(keys) > 1 else [])
                    if keys
                    else []
                )
        columns.append(column(runs, nulls, values, count))
    return written(rows.num_rows, asked.block_rows, columns)


@pytest.mark.parametrize("count", [0, 1, 39, 40, 41, 200])
@pytest.mark.parametrize("left_out", [(), ("host",), ("id", "text")])
@pytest.mark.parametrize(
    "options", [OPTIONS, {**OPTIONS, "index.values.columns": "auto", "index.bloom.columns": "auto"}]
)
def test_task_keys_give_the_segment_of_the_rows(
    catalog: Catalog, count: int, left_out: tuple[str, ...], options: dict[str, str]
) -> None:
    table = catalog.create_table("db.t", Schema.from_arrow(COLUMNS, options=options))
    collector, rows = SegmentCollector(table), some_rows(count, count)
    assert isinstance(collector, TaskCollector)
    whole = collector.begin()
    whole.add(rows)
    completing = collector.completing(task_bytes(collector, rows, left_out), count)
    assert set(completing.columns) == set(left_out)
    rest = completing.begin()
    if left_out:
        rest.add(rows.select([*completing.columns]))
    assert rest.finish() == whole.finish()


def test_keys_of_another_row_count_are_refused(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", Schema.from_arrow(COLUMNS, options=OPTIONS))
    collector, rows = SegmentCollector(table), some_rows(10, 1)
    rest = collector.completing(task_bytes(collector, rows, ("host",)), 10).begin()
    rest.add(some_rows(11, 1).select(["host"]))
    with pytest.raises(InputError, match="10 rows, its file has 11"):
        rest.finish()


def lies() -> dict[str, bytes]:
    good = column([run(0, [1, 5]), run(1, [3])], [0], [0, 1], 2)
    body = written(15, 10, [good])[:-4]
    return {
        "empty": b"",
        "cut": summed(body[:-1]),
        "longer": summed(body + b"\0"),
        "without checksum": body,
        "other magic": summed(b"LGKEYS02" + body[8:]),
        "other rows": written(16, 10, [good]),
        "other blocks": written(15, 11, [good]),
        "more columns": written(15, 10, [good, good]),
        "no column": written(15, 10, []),
        "state": written(15, 10, [b"\2" + good[1:]]),
        "block": written(15, 10, [column([run(2, [1])], [], [0], 2)]),
        "bit": written(15, 10, [column([run(0, [1])], [2], [0], 8)]),
        "no keys": written(15, 10, [column([struct.pack("<IIBQ", 0, 0, 1, 1)], [], [0], 2)]),
        "many keys": written(15, 10, [column([struct.pack("<IIBQ", 0, 2**32 - 1, 1, 1)], [], [0], 2)]),
        "no width": written(15, 10, [column([struct.pack("<IIBQ", 0, 2**32 - 1, 0, 1)], [], [0], 2)]),
        "width": written(15, 10, [column([run(0, [1, 2], 6)], [], [0], 2)]),
        "first key": written(15, 10, [column([run(0, [2**40])], [], [0], 2)]),
        "last key": written(15, 10, [column([run(0, [2**40 - 1, 2**40])], [], [0], 2)]),
        "runs": written(15, 10, [b"\1" + struct.pack("<I", 2**32 - 1) + good[5:]]),
    }


@pytest.mark.parametrize("name", lies())
def test_wrong_task_keys_are_refused(name: str) -> None:
    with pytest.raises(InputError):
        read_keys(lies()[name], 1, 15, 10)


def test_a_few_bytes_cannot_claim_billions_of_blocks() -> None:
    with pytest.raises(InputError, match="blocks of a file"):
        read_keys(written(2**62, 1, [b"\0"]), 1, 2**62, 1)


def test_each_flipped_byte_is_detected() -> None:
    good = written(15, 10, [column([run(0, [1, 5]), run(1, [3])], [0], [0, 1], 2)])
    for at in range(len(good)):
        with pytest.raises(InputError):
            read_keys(good[:at] + bytes([good[at] ^ 64]) + good[at + 1 :], 1, 15, 10)


def test_random_contents_with_a_sum_are_refused_or_read() -> None:
    chance = random.Random(7)
    good = written(15, 10, [column([run(0, [1, 5]), run(1, [3])], [0], [0, 1], 2)])[:-4]
    for _ in range(2000):
        data = bytearray(good)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            (found,) = read_keys(summed(bytes(data)), 1, 15, 10)
        except InputError:
            continue
        if found is not None:
            part = found.content(2, chosen=False)
            assert len(part.keys) == len(part.places)
            assert part.nulls | part.values <= BitMap([0, 1])


class Lengths:
    """A kind of another plugin."""

    def accepts(self, data_type: Any) -> bool:
        return True

    def keys(self, values: pa.Array, data_type: Any) -> Any:
        return np.array([len(str(each)) for each in values.to_pylist()], np.uint64)

    def lookup_keys(self, comparison: Any, data_type: Any) -> None:
        return None


def test_tasks_collect_for_kinds_and_types_that_the_connector_has(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = plugins().index_kinds()
    monkeypatch.setattr(type(plugins()), "index_kinds", lambda self: {**kinds, "lengths": Lengths()})
    columns = pa.schema([("id", pa.int64()), ("host", pa.string()), ("hour", pa.time32("ms"))])
    options = {"index.values.columns": "id,hour", "index.lengths.columns": "id,host"}
    table = catalog.create_table("db.t", Schema.from_arrow(columns, options=options))
    collector = SegmentCollector(table)
    asked = collector.task_keys()
    assert asked is not None
    assert [(each.column, each.kind, each.values) for each in asked.columns] == [("id", "values", "BIGINT")]
    data = written(1, asked.block_rows, [column([run(0, [7])], [], [0], 1)])
    assert set(collector.completing(data, 1).columns) == {"id", "host", "hour"}
    part = segment_of(_finished(collector.completing(data, 1)), "it").parts[part_name(collector.indexed[-2])]
    assert part.content().keys.tolist() == [7]
    plain = catalog.create_table(
        "db.u", Schema.from_arrow(columns, options={"index.lengths.columns": "host"})
    )
    assert SegmentCollector(plain).task_keys() is None


def _finished(collector: SegmentCollector) -> bytes:
    collection = collector.begin()
    collection.add(pa.table({"id": [1], "host": ["a"], "hour": pa.array([1], pa.time32("ms"))}))
    return collection.finish()


def test_abandoned_key_files_are_orphans(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", Schema.from_arrow(COLUMNS, options=OPTIONS))
    table.append(some_rows(5, 1))
    (segment,) = Path(table.location, "index").iterdir()
    left = segment.with_name("keys-write-0-0-0.orc")
    left.write_bytes(b"keys")
    os.utime(left, (1, 1))
    time.sleep(0.01)
    removed = remove_orphan_files(table, older_than_millis=now_millis(), allow_recent=True)
    assert (removed.data_files, removed.other_files) == (0, 1)
    assert list(Path(table.location, "index").iterdir()) == [segment]

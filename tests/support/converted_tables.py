"""Tables whose data files are Parquet or Avro, made of ORC tables: the same rows, statistics and levels."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from lockgate.framework.orc import EncryptedOrcFile
from lockgate.framework.store.commit.message import CommitMessage
from lockgate.framework.store.manifests.manifest import DataFileMeta
from lockgate.framework.store.tables.table import Table
from lockgate.framework.types import DataType, Kind, from_arrow
from lockgate.framework.types.datatype import BINARY_KINDS, INTEGER_KINDS, STRING_KINDS


def to_parquet(table: Table, *, row_group_rows: int = 1000, every: int = 1) -> None:
    """Commit each data file of a table again as Parquet; with `every` only each second, third, ... one."""
    _replace(
        table,
        itertools.repeat(".parquet"),
        lambda rows, path: pq.write_table(rows, path, row_group_size=row_group_rows),
        every,
    )


def to_thin(table: Table) -> None:
    """Commit each data file of a table again without its key columns, in ORC, Parquet and Avro by turns."""
    endings = itertools.cycle((".thin.orc", ".parquet", ".avro"))

    def write(rows: pa.Table, path: Path) -> None:
        rows = rows.select([name for name in rows.column_names if not name.startswith("_KEY_")])
        if path.suffix == ".orc":
            orc.write_table(rows, path)
        elif path.suffix == ".parquet":
            pq.write_table(rows, path, row_group_size=1000)
        else:
            _write_avro(table, rows, path, 16_000)

    _replace(table, endings, write, 1)


def to_avro(table: Table, *, block_bytes: int = 16_000, every: int = 1) -> None:
    """The same with Avro, as Paimon writes it: in blocks of so many bytes, unpacked."""

    _replace(
        table,
        itertools.repeat(".avro"),
        lambda rows, path: _write_avro(table, rows, path, block_bytes),
        every,
    )


def _write_avro(table: Table, rows: pa.Table, path: Path, block_bytes: int) -> None:
    types = {field.name: field.type for field in table.schema.fields}
    for name in rows.schema.names:
        types.setdefault(name, from_arrow(rows.schema.field(name).type))
    fields = [{"name": name, "type": _avro(types[name], name)} for name in rows.schema.names]
    schema = {"type": "record", "name": "org.apache.paimon.avro.generated.record", "fields": fields}
    records = [{name: _stored(types[name], value) for name, value in row.items()} for row in rows.to_pylist()]
    with path.open("wb") as file:
        fastavro.writer(file, fastavro.parse_schema(schema), records, "deflate", sync_interval=block_bytes)


def _avro(data_type: DataType, path: str) -> list[Any]:
    """Return the type of Avro that Paimon gives a column that may be null."""
    kind = data_type.kind
    simple = {
        Kind.BOOLEAN: "boolean",
        Kind.BIGINT: "long",
        Kind.FLOAT: "float",
        Kind.DOUBLE: "double",
        Kind.DATE: {"type": "int", "logicalType": "date"},
    }
    stored: Any
    if kind in simple:
        stored = simple[kind]
    elif kind in INTEGER_KINDS:
        stored = "int"
    elif kind in STRING_KINDS:
        stored = "string"
    elif kind in BINARY_KINDS:
        stored = "bytes"
    elif kind is Kind.DECIMAL:
        digits = {"precision": data_type.precision, "scale": data_type.scale}
        stored = {"type": "bytes", "logicalType": "decimal", **digits}
    elif data_type.is_timestamp:
        unit = "millis" if (data_type.precision or 0) <= 3 else "micros"
        local = "local-" if kind is Kind.TIMESTAMP_LTZ else ""
        stored = {"type": "long", "logicalType": f"{local}timestamp-{unit}"}
    elif kind is Kind.ARRAY:
        stored = {"type": "array", "items": _avro(data_type.element_type(), path)}
    elif kind is Kind.MAP and data_type.key_type().kind in STRING_KINDS:
        stored = {"type": "map", "values": _avro(data_type.value_type(), path)}
    elif kind is Kind.MAP:
        parts = {"key": data_type.key_type(), "value": data_type.value_type()}
        fields = [{"name": name, "type": _avro(part, f"{path}_{name}")} for name, part in parts.items()]
        stored = {"type": "array", "items": {"type": "record", "name": f"record_{path}", "fields": fields}}
    else:
        fields = [
            {"name": field.name, "type": _avro(field.type, f"{path}_{field.name}")}
            for field in data_type.fields
        ]
        stored = {"type": "record", "name": f"record_{path}", "fields": fields}
    return ["null", stored]


def _stored(data_type: DataType, value: Any) -> Any:
    """Return a value as `_avro`'s type takes it."""
    if value is None:
        return None
    kind = data_type.kind
    if kind is Kind.TIMESTAMP_LTZ:
        return value.replace(tzinfo=None)
    if kind is Kind.TIMESTAMP:
        return value.replace(tzinfo=datetime.UTC)
    if kind is Kind.ARRAY:
        return [_stored(data_type.element_type(), one) for one in value]
    if kind is Kind.ROW:
        return {field.name: _stored(field.type, value[field.name]) for field in data_type.fields}
    if kind is Kind.MAP:
        pairs = [(key, _stored(data_type.value_type(), one)) for key, one in value]
        texts = data_type.key_type().kind in STRING_KINDS
        return dict(pairs) if texts else [{"key": key, "value": one} for key, one in pairs]
    return value


def _replace(
    table: Table, suffixes: Iterator[str], write: Callable[[pa.Table, Path], None], every: int
) -> None:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    replaced: dict[Any, list[tuple[DataFileMeta, DataFileMeta]]] = defaultdict(list)
    live = table.manifests.live_files(snapshot)
    entries = [entry for entry in live if entry.file.file_name.endswith(".orc")]
    for entry in entries[::every]:
        path = Path(table.paths.data_file(entry.partition, entry.bucket, entry.file))
        target = path.with_suffix(next(suffixes))
        with EncryptedOrcFile((table.file_system, str(path)), keys=table.keys, name=str(path)) as source:
            rows = source.read()
        declared = {field.name: field.type for field in table.schema.arrow_schema}
        schema = pa.schema([(field.name, declared.get(field.name, field.type)) for field in rows.schema])
        write(rows.cast(schema), target)
        file = dataclasses.replace(entry.file, file_name=target.name, file_size=target.stat().st_size)
        replaced[entry.partition, entry.bucket, entry.total_buckets].append((entry.file, file))
    messages = [
        CommitMessage(
            partition,
            bucket,
            buckets,
            added=tuple(new for _, new in files),
            deleted=tuple(old for old, _ in files),
        )
        for (partition, bucket, buckets), files in replaced.items()
    ]
    table.commit(messages, kind="COMPACT")

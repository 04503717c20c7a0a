"""Rewriting source files through Spark: in parallel, and correct for values that only Spark understands."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from typing import Any

import pyarrow as pa

from lockgate.framework.io import link_or_copy
from lockgate.framework.keys import KeyProvider
from lockgate.framework.options import FILE_FORMAT
from lockgate.framework.orc import verify_file
from lockgate.framework.spark import since_4_1
from lockgate.framework.store import CommitMessage, FileKind, Schema, Table
from lockgate.framework.types import DataField, to_arrow, to_spark_json
from lockgate.procedures.builtin.migrate import value_hashes
from lockgate.procedures.builtin.migrate.copy_check import RowsDigest, is_padded
from lockgate.procedures.builtin.migrate.file_adoption import Inspected, rewrite_in_python, source_batches
from lockgate.procedures.builtin.migrate.migration_source import ORC, MigrationSource
from lockgate.procedures.procedure import ProcedureContext

# Options that say how files are encrypted, masked and tagged.
_OF_FILES = ("orc.", "encryption.")


def rewrite(
    context: ProcedureContext,
    source: MigrationSource,
    table: Table,
    files: Sequence[Inspected],
    keys: KeyProvider | None,
) -> list[CommitMessage]:
    """Write the rows of `files` into new files of a table, by Spark where there is one and it can help."""
    if not files:
        return []
    if context.spark is None or source.format != ORC:
        return rewrite_in_python(source, table, files, keys)
    if table.options.get_option(FILE_FORMAT) != ORC:
        return rewrite_into(context, source, table, files, keys)  # Spark's tasks write ORC alone
    return rewrite_by_spark(context, source, table, files, keys)


def rewrite_into(
    context: ProcedureContext,
    source: MigrationSource,
    table: Table,
    files: Sequence[Inspected],
    keys: KeyProvider | None,
) -> list[CommitMessage]:
    """Write the rows of `files` into new files of a table that has rows already.

    Values that only Spark reads correctly pass through a staging table, of which Python writes them: their
    numbers in the order of all rows follow those of the table.
    """
    special = [each for each in files if each.only_spark]
    if context.spark is None or not special:
        return rewrite_in_python(source, table, files, keys) if files else []
    options = {key: text for key, text in table.schema.options.items() if key.startswith(_OF_FILES)}
    fields = tuple(DataField(each.id, each.name, each.type.with_nullable(True)) for each in source.fields)
    with _staged(context, source, table, Schema(fields, options=options), special, keys) as staging:
        batches = chain(
            source_batches(source, [each for each in files if not each.only_spark], keys),
            staging.read_batches(strict=True),
        )
        return table.write(batches)


def rewrite_by_spark(
    context: ProcedureContext,
    source: MigrationSource,
    table: Table,
    files: Sequence[Inspected],
    keys: KeyProvider | None,
) -> list[CommitMessage]:
    """Let Spark write the rows of `files` into a staging table, and take over its files.

    So the new table becomes visible all at once. Encrypted files are read in a strict key
    scope. Files with tags are checked by them first, since Spark's reader does not.
    """
    schema = table.schema
    like = Schema(schema.fields, schema.partition_keys, schema.primary_keys, dict(schema.options))
    with _staged(context, source, table, like, files, keys) as staging:
        return _take_over(staging, table)


@contextmanager
def _staged(
    context: ProcedureContext,
    source: MigrationSource,
    table: Table,
    like: Schema,
    files: Sequence[Inspected],
    keys: KeyProvider | None,
) -> Iterator[Table]:
    """Let Spark write the rows of `files` into a table next to another one, which is dropped at the end."""
    for each in files:
        if each.tagged:
            found = (source.file_system, each.file.path)
            verify_file(found, keys, name=each.file.path).raise_for_damage()
    namespace = table.identifier.namespace
    staging = f"{table.identifier.name}__migrating_{uuid.uuid4().hex[:8]}"
    context.catalog.create_table(f"{namespace}.{staging}", like)
    try:
        rows = _read(context.spark, source, files, keys)
        rows.writeTo(f"`{context.catalog_name}`.`{namespace}`.`{staging}`").append()
        yield context.catalog.load_table(f"{namespace}.{staging}")
    finally:
        context.catalog.drop_table(f"{namespace}.{staging}")


def origin_digest(
    context: ProcedureContext,
    source: MigrationSource,
    files: Sequence[Inspected],
    keys: KeyProvider | None,
    threads: int,
) -> RowsDigest:
    """Read all files of a source again, so many at a time, and return what their rows are."""

    def digest(file: Inspected) -> RowsDigest:
        part = RowsDigest(source.fields)
        for batch in source_batches(source, [file], keys):
            part.add(batch)
        return part

    found = RowsDigest(source.fields)
    with ThreadPoolExecutor(threads) as pool:
        found.add_all(pool.map(digest, [each for each in files if not each.only_spark]))
    special = [each for each in files if each.only_spark and each.rows]
    if special:
        _add_by_spark(found, _read(context.spark, source, special, keys))
    return found


def _add_by_spark(found: RowsDigest, rows: Any) -> None:
    """Count rows that only Spark reads correctly; its tasks hash their values by the same function."""
    from pyspark import cloudpickle
    from pyspark.sql import functions
    from pyspark.sql.pandas import functions as arrow_functions

    register: Any = cloudpickle.register_pickle_by_value
    register(value_hashes)
    make = since_4_1(arrow_functions, "arrow_udf", "the check of rows that only Spark reads correctly")
    sums = []
    for number, each in enumerate(found.fields):
        column = functions.col("`" + each.name.replace("`", "``") + "`")
        hashed = make(_hashing(to_arrow(each.type), is_padded(each)), "bigint")(column)
        total = functions.sum(hashed.cast("decimal(38, 0)"))
        sums += [functions.count(column).alias(f"count{number}"), total.alias(f"sum{number}")]
    row = rows.agg(functions.count(functions.lit(1)).alias("num_rows"), *sums).first()
    found.rows += row["num_rows"]
    for number, each in enumerate(found.fields):
        nulls = row["num_rows"] - row[f"count{number}"]
        found.merge(each.name, nulls, int(row[f"sum{number}"] or 0))


def _hashing(target: pa.DataType, padded: bool) -> Callable[[pa.Array], pa.Array]:
    hash_values = value_hashes.hash_values

    def hashed(values: pa.Array) -> pa.Array:
        # Spark names the time zone of a timestamp in another way.
        return pa.array(hash_values(values.cast(target), padded).view("int64"))

    return hashed


def _read(spark: Any, source: MigrationSource, files: Sequence[Inspected], keys: KeyProvider | None) -> Any:
    from pyspark.sql.types import StructType

    reader = spark.read.schema(StructType.fromJson(to_spark_json(source.fields)))
    reader = reader.option("basePath", _hadoop_path(source, source.location))
    if any(each.encryption for each in files):
        reader = reader.option("orc.key.provider", f"lockgate:{_strict_scope(keys)}")
    return reader.orc([_hadoop_path(source, each.file.path) for each in files])


def _strict_scope(keys: KeyProvider | None) -> str:
    from lockgate.framework.spark import dispatcher, strict

    scopes = dispatcher().scopes
    return strict(scopes.register(keys or scopes.of_spec(None)))


def _hadoop_path(source: MigrationSource, path: str) -> str:
    # Hadoop takes a path's text as it is: the scheme of the address, and no escapes.
    scheme = source.file_system.uri(path).partition("://")[0]
    return f"{scheme}://{path}" if scheme == "file" else source.file_system.uri(path)


def _take_over(staging: Table, table: Table) -> list[CommitMessage]:
    messages: list[CommitMessage] = []
    snapshot = staging.latest_snapshot()
    if snapshot is None:
        return messages
    for entry in staging.manifests.live_files(snapshot):
        assert entry.kind is FileKind.ADD
        where = (entry.partition, entry.bucket, entry.file)
        link_or_copy(
            staging.file_system,
            staging.paths.data_file(*where),
            table.file_system,
            table.paths.data_file(*where),
        )
        messages.append(CommitMessage(entry.partition, entry.bucket, entry.total_buckets, (entry.file,)))
    return messages

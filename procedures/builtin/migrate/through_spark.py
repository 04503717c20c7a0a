"""Rewriting source files through Spark: in parallel, and correct for values that only Spark understands."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from lockgate.framework.io.copies import link_or_copy
from lockgate.framework.keys import KeyProvider
from lockgate.framework.orc import verify_file
from lockgate.framework.store import CommitMessage, FileKind, Schema, Table
from lockgate.framework.types import to_spark_json
from lockgate.procedures.builtin.migrate.files import Inspected
from lockgate.procedures.builtin.migrate.source import Source
from lockgate.procedures.procedure import ProcedureContext


def rewrite_by_spark(
    context: ProcedureContext,
    source: Source,
    table: Table,
    files: Sequence[Inspected],
    keys: KeyProvider | None,
) -> list[CommitMessage]:
    """Let Spark write the rows of `files` into a staging table, and take over its files.

    So the new table becomes visible all at once. Encrypted files are read in a strict key
    scope. Files with tags are checked by them first, since Spark's reader does not.
    """
    for each in files:
        if each.tagged:
            found = (source.file_system, each.file.path)
            verify_file(found, keys, name=each.file.path).raise_for_damage()
    namespace = table.identifier.namespace
    staging = f"{table.identifier.name}__migrating_{uuid.uuid4().hex[:8]}"
    schema = table.schema
    like = Schema(schema.fields, schema.partition_keys, schema.primary_keys, dict(schema.options))
    context.catalog.create_table(f"{namespace}.{staging}", like)
    try:
        rows = _read(context.spark, source, files, keys)
        rows.writeTo(f"`{context.catalog_name}`.`{namespace}`.`{staging}`").append()
        return _take_over(context.catalog.load_table(f"{namespace}.{staging}"), table)
    finally:
        context.catalog.drop_table(f"{namespace}.{staging}")


def _read(spark: Any, source: Source, files: Sequence[Inspected], keys: KeyProvider | None) -> Any:
    from pyspark.sql.types import StructType

    reader = spark.read.schema(StructType.fromJson(to_spark_json(source.fields)))
    reader = reader.option("basePath", _hadoop_path(source, source.location))
    if any(each.encryption for each in files):
        reader = reader.option("orc.key.provider", f"lockgate:{_strict_scope(keys)}")
    return reader.orc([_hadoop_path(source, each.file.path) for each in files])


def _strict_scope(keys: KeyProvider | None) -> str:
    from lockgate.framework.spark.bridge.dispatcher import dispatcher
    from lockgate.framework.spark.catalogs import strict

    scopes = dispatcher().scopes
    return strict(scopes.register(keys or scopes.of_spec(None)))


def _hadoop_path(source: Source, path: str) -> str:
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

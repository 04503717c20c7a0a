"""Columns of Paimon's system tables, by the name of the table.

Source: the tables of package `org.apache.paimon.table.system` in Paimon 1.4, in their order and with their
types; what later releases add is left out, so that the rows are those that any client of theirs expects.
"""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.framework.types import DataField, array, parse_type, row

_FILE = """
    partition STRING, bucket INT NOT NULL, file_path STRING NOT NULL, file_format STRING NOT NULL,
    schema_id BIGINT NOT NULL, level INT NOT NULL, record_count BIGINT NOT NULL,
    file_size_in_bytes BIGINT NOT NULL, min_key STRING, max_key STRING
"""
_OF_TABLES: dict[str, str] = {
    "snapshots": """
        snapshot_id BIGINT NOT NULL, schema_id BIGINT NOT NULL, commit_user STRING NOT NULL,
        commit_identifier BIGINT NOT NULL, commit_kind STRING NOT NULL, commit_time TIMESTAMP(3) NOT NULL,
        base_manifest_list STRING NOT NULL, delta_manifest_list STRING NOT NULL,
        changelog_manifest_list STRING, total_record_count BIGINT, delta_record_count BIGINT,
        changelog_record_count BIGINT, watermark BIGINT, next_row_id BIGINT
    """,
    "schemas": """
        schema_id BIGINT NOT NULL, fields STRING NOT NULL, partition_keys STRING NOT NULL,
        primary_keys STRING NOT NULL, options STRING NOT NULL, comment STRING,
        update_time TIMESTAMP(3) NOT NULL
    """,
    "options": "key STRING NOT NULL, value STRING NOT NULL",
    "tags": """
        tag_name STRING NOT NULL, snapshot_id BIGINT NOT NULL, schema_id BIGINT NOT NULL,
        commit_time TIMESTAMP(3) NOT NULL, record_count BIGINT, create_time TIMESTAMP(3), time_retained STRING
    """,
    "branches": "branch_name STRING NOT NULL, create_time TIMESTAMP(3) NOT NULL",
    "consumers": "consumer_id STRING NOT NULL, next_snapshot_id BIGINT NOT NULL",
    "files": f"""{_FILE},
        null_value_counts STRING NOT NULL, min_value_stats STRING NOT NULL, max_value_stats STRING NOT NULL,
        min_sequence_number BIGINT, max_sequence_number BIGINT, creation_time TIMESTAMP(3),
        deleteRowCount BIGINT, file_source STRING, first_row_id BIGINT
    """,
    "file_key_ranges": f"{_FILE}, first_row_id BIGINT",
    "manifests": """
        file_name STRING NOT NULL, file_size BIGINT NOT NULL, num_added_files BIGINT NOT NULL,
        num_deleted_files BIGINT NOT NULL, schema_id BIGINT NOT NULL, min_partition_stats STRING,
        max_partition_stats STRING, min_row_id BIGINT, max_row_id BIGINT
    """,
    "partitions": """
        partition STRING, record_count BIGINT NOT NULL, file_size_in_bytes BIGINT NOT NULL,
        file_count BIGINT NOT NULL, last_update_time TIMESTAMP(3), created_at TIMESTAMP(3),
        created_by STRING, updated_by STRING, options STRING
    """,
    "buckets": """
        partition STRING, bucket INT NOT NULL, record_count BIGINT NOT NULL,
        file_size_in_bytes BIGINT NOT NULL, file_count BIGINT NOT NULL, last_update_time TIMESTAMP(3)
    """,
    "statistics": """
        snapshot_id BIGINT NOT NULL, schema_id BIGINT NOT NULL, mergedRecordCount BIGINT,
        mergedRecordSize BIGINT, colstat STRING
    """,
    "aggregation_fields": """
        field_name STRING NOT NULL, field_type STRING NOT NULL, function STRING, function_options STRING,
        comment STRING
    """,
    "table_indexes": """
        partition STRING, bucket INT NOT NULL, index_type STRING NOT NULL, file_name STRING NOT NULL,
        file_size BIGINT NOT NULL, row_count BIGINT NOT NULL
    """,
}
_OF_WAREHOUSES: dict[str, str] = {
    "all_table_options": """
        database_name STRING NOT NULL, table_name STRING NOT NULL, key STRING NOT NULL, value STRING NOT NULL
    """,
    "catalog_options": "key STRING NOT NULL, value STRING NOT NULL",
    "tables": """
        database_name STRING, table_name STRING, table_type STRING, partitioned BOOLEAN, primary_key BOOLEAN,
        owner STRING, created_at BIGINT, created_by STRING, updated_at BIGINT, updated_by STRING,
        record_count BIGINT, file_size_in_bytes BIGINT, file_count BIGINT, last_file_creation_time BIGINT
    """,
    "partitions": """
        database_name STRING, table_name STRING, partition_name STRING, record_count BIGINT,
        file_size_in_bytes BIGINT, file_count BIGINT, last_file_creation_time BIGINT, done BOOLEAN
    """,
}

_RANGE = "f0 STRING NOT NULL, f1 INT NOT NULL, f2 INT NOT NULL, _CARDINALITY BIGINT"


def _parsed(text: str) -> tuple[DataField, ...]:
    columns = (column.split(maxsplit=1) for column in text.split(","))
    return tuple(DataField(number, name, parse_type(kind)) for number, (name, kind) in enumerate(columns))


def _with(columns: tuple[DataField, ...], *last: DataField) -> tuple[DataField, ...]:
    return (*columns, *last)


TABLE_COLUMNS: dict[str, tuple[DataField, ...]] = {name: _parsed(text) for name, text in _OF_TABLES.items()}
TABLE_COLUMNS["files"] = _with(
    TABLE_COLUMNS["files"], DataField(19, "write_cols", array(parse_type("STRING")))
)
TABLE_COLUMNS["table_indexes"] = _with(
    TABLE_COLUMNS["table_indexes"], DataField(6, "dv_ranges", array(row(_parsed(_RANGE))))
)
WAREHOUSE_COLUMNS: dict[str, tuple[DataField, ...]] = {
    name: _parsed(text) for name, text in _OF_WAREHOUSES.items()
}

ROW_KIND = "rowkind"
"""The first column of tables of changes: `+I`, `-U`, `+U` or `-D`."""


def with_row_kind(columns: Sequence[DataField]) -> tuple[DataField, ...]:
    """Return the columns of `t$audit_log`."""
    return (DataField(-1, ROW_KIND, parse_type("STRING")), *columns)


def as_arrays(columns: Sequence[DataField]) -> tuple[DataField, ...]:
    """Return the columns of `t$binlog`: each an array, of the value after or of those before and after."""
    arrays = (
        DataField(field.id, field.name, array(field.type.with_nullable(True)), field.description)
        for field in columns
    )
    return with_row_kind(tuple(arrays))

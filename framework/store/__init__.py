"""The table store: Paimon's table format, read and written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.framework.store.codec.simple_stats import EMPTY_STATS, SimpleStats
    from lockgate.framework.store.commit.base_snapshot import BaseSnapshot
    from lockgate.framework.store.commit.commit_request import (
        CommitRequest,
        Overwrite,
        PreparedCommit,
        StreamEpoch,
    )
    from lockgate.framework.store.commit.message import CommitMessage
    from lockgate.framework.store.confidential.column_visibility import (
        column_marks,
        encrypted_columns,
        visibility,
    )
    from lockgate.framework.store.confidential.confidential_columns import confidential_in
    from lockgate.framework.store.confidential.exposure_text import exposure_reasons
    from lockgate.framework.store.confidential.exposures import Exposure, exposures
    from lockgate.framework.store.confidential.withheld_keys import (
        KeyUse,
        key_uses,
        needed_columns,
        sort_columns,
        withheld_keys,
    )
    from lockgate.framework.store.ddl.merged_columns import changes_of, merged_columns
    from lockgate.framework.store.ddl.schema_changes import (
        AddColumn,
        ChangeComment,
        ChangeDefault,
        ChangeNullability,
        ChangeType,
        DropColumn,
        MoveColumn,
        Position,
        RemoveOption,
        RenameColumn,
        SetComment,
        SetOption,
    )
    from lockgate.framework.store.grants import (
        grant,
        grant_by_name,
        hidden_from,
        require_full_visibility,
        whole_refusal,
    )
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
    from lockgate.framework.store.manifests.column_bounds import ColumnBounds, may_match_files
    from lockgate.framework.store.manifests.file_table import FileTable
    from lockgate.framework.store.manifests.index_manifest import IndexEntry, index_path
    from lockgate.framework.store.manifests.manifest import (
        DataFileMeta,
        FileKind,
        FileSource,
        ManifestEntry,
        ManifestFileMeta,
    )
    from lockgate.framework.store.merge.merge_plan import MergePlanJson
    from lockgate.framework.store.metadata.identifier import Identifier
    from lockgate.framework.store.metadata.snapshot import CommitKind, Snapshot
    from lockgate.framework.store.metadata.tag_files import Tag
    from lockgate.framework.store.pruning.candidates import candidate_of
    from lockgate.framework.store.pruning.split import Split
    from lockgate.framework.store.rows.bucket import assign_buckets
    from lockgate.framework.store.rows.row_kinds import KindsJson
    from lockgate.framework.store.scan.matching_rows import StripeRange, WantedKeys
    from lockgate.framework.store.scan.read import FileReader
    from lockgate.framework.store.scan.read_request import ReadRequest, require_unrestricted
    from lockgate.framework.store.scan.readable_files import stored_entries, visible_entries
    from lockgate.framework.store.scan.scan import ScanPlan
    from lockgate.framework.store.scan.scan_source import ScanSource
    from lockgate.framework.store.scan.snapshot_selection import SNAPSHOT_SOURCE, Between, Selection
    from lockgate.framework.store.scan.table_scan import TableScan
    from lockgate.framework.store.schema.file_indexes import WantedIndex, value_kind_of, wanted_indexes
    from lockgate.framework.store.schema.schema import Schema, TableSchema
    from lockgate.framework.store.schema.table_indexes import (
        IndexedField,
        bounded_fields,
        has_table_indexes,
        indexed_fields,
        is_of_manifests,
    )
    from lockgate.framework.store.schema.unsupported_features import (
        check_known_types,
        check_readable,
        check_writable,
    )
    from lockgate.framework.store.streams.stream_consumers import StreamConsumers
    from lockgate.framework.store.system.row_batches import batches_of
    from lockgate.framework.store.system.system_tables import METADATA_TABLES, ROW_TABLES
    from lockgate.framework.store.tables.catalog import Catalog
    from lockgate.framework.store.tables.replace import Replacement
    from lockgate.framework.store.tables.table import Table
    from lockgate.framework.store.write.task_results import TaskFile, TaskResults
    from lockgate.framework.store.write.write_session import (
        WriteOptions,
        WritePlan,
        WriteSession,
        WriteSessions,
    )


__all__ = [
    "EMPTY_STATS",
    "METADATA_TABLES",
    "ROW_TABLES",
    "SNAPSHOT_SOURCE",
    "AddColumn",
    "BaseSnapshot",
    "Between",
    "Catalog",
    "ChangeComment",
    "ChangeDefault",
    "ChangeNullability",
    "ChangeType",
    "ColumnBounds",
    "CommitKind",
    "CommitMessage",
    "CommitRequest",
    "DataFileMeta",
    "DropColumn",
    "Exposure",
    "FileKind",
    "FileReader",
    "FileSource",
    "FileTable",
    "Identifier",
    "IndexEntry",
    "IndexedField",
    "KeyUse",
    "KindsJson",
    "ManifestEntry",
    "ManifestFileMeta",
    "MergePlanJson",
    "MoveColumn",
    "Overwrite",
    "Position",
    "PreparedCommit",
    "ReadRequest",
    "RemoveOption",
    "RenameColumn",
    "Replacement",
    "ScanPlan",
    "ScanSource",
    "Schema",
    "Selection",
    "SetComment",
    "SetOption",
    "SimpleStats",
    "Snapshot",
    "Split",
    "StreamConsumers",
    "StreamEpoch",
    "StripeRange",
    "Table",
    "TableHandle",
    "TableScan",
    "TableSchema",
    "Tag",
    "TaskFile",
    "TaskResults",
    "WantedIndex",
    "WantedKeys",
    "WriteOptions",
    "WritePlan",
    "WriteSession",
    "WriteSessions",
    "assign_buckets",
    "batches_of",
    "bounded_fields",
    "candidate_of",
    "changes_of",
    "check_known_types",
    "check_readable",
    "check_writable",
    "column_marks",
    "confidential_in",
    "encrypted_columns",
    "expire_snapshots",
    "exposure_reasons",
    "exposures",
    "grant",
    "grant_by_name",
    "has_table_indexes",
    "hidden_from",
    "index_path",
    "indexed_fields",
    "is_of_manifests",
    "key_uses",
    "may_match_files",
    "merged_columns",
    "needed_columns",
    "require_full_visibility",
    "require_unrestricted",
    "sort_columns",
    "stored_entries",
    "value_kind_of",
    "visibility",
    "visible_entries",
    "wanted_indexes",
    "whole_refusal",
    "withheld_keys",
]

__getattr__ = lazy_attributes(
    __name__,
    {
        ".codec.simple_stats": "EMPTY_STATS SimpleStats",
        ".commit.base_snapshot": "BaseSnapshot",
        ".commit.commit_request": "CommitRequest Overwrite PreparedCommit StreamEpoch",
        ".commit.message": "CommitMessage",
        ".confidential.column_visibility": "column_marks encrypted_columns visibility",
        ".confidential.confidential_columns": "confidential_in",
        ".confidential.exposure_text": "exposure_reasons",
        ".confidential.exposures": "Exposure exposures",
        ".confidential.withheld_keys": "KeyUse key_uses needed_columns sort_columns withheld_keys",
        ".ddl.merged_columns": "changes_of merged_columns",
        ".ddl.schema_changes": (
            "AddColumn ChangeComment ChangeDefault ChangeNullability ChangeType DropColumn MoveColumn "
            "Position RemoveOption RenameColumn SetComment SetOption"
        ),
        ".grants": "grant grant_by_name hidden_from require_full_visibility whole_refusal",
        ".handle": "TableHandle",
        ".maintenance.snapshot_expiry": "expire_snapshots",
        ".manifests.column_bounds": "ColumnBounds may_match_files",
        ".manifests.file_table": "FileTable",
        ".manifests.index_manifest": "IndexEntry index_path",
        ".manifests.manifest": "DataFileMeta FileKind FileSource ManifestEntry ManifestFileMeta",
        ".merge.merge_plan": "MergePlanJson",
        ".metadata.identifier": "Identifier",
        ".metadata.snapshot": "CommitKind Snapshot",
        ".metadata.tag_files": "Tag",
        ".pruning.candidates": "candidate_of",
        ".pruning.split": "Split",
        ".rows.bucket": "assign_buckets",
        ".rows.row_kinds": "KindsJson",
        ".scan.matching_rows": "StripeRange WantedKeys",
        ".scan.read": "FileReader",
        ".scan.read_request": "ReadRequest require_unrestricted",
        ".scan.readable_files": "stored_entries visible_entries",
        ".scan.scan": "ScanPlan",
        ".scan.scan_source": "ScanSource",
        ".scan.snapshot_selection": "SNAPSHOT_SOURCE Between Selection",
        ".scan.table_scan": "TableScan",
        ".schema.file_indexes": "WantedIndex value_kind_of wanted_indexes",
        ".schema.schema": "Schema TableSchema",
        ".schema.table_indexes": (
            "IndexedField bounded_fields has_table_indexes indexed_fields is_of_manifests"
        ),
        ".schema.unsupported_features": "check_known_types check_readable check_writable",
        ".streams.stream_consumers": "StreamConsumers",
        ".system.row_batches": "batches_of",
        ".system.system_tables": "METADATA_TABLES ROW_TABLES",
        ".tables.catalog": "Catalog",
        ".tables.replace": "Replacement",
        ".tables.table": "Table",
        ".write.task_results": "TaskFile TaskResults",
        ".write.write_session": "WriteOptions WritePlan WriteSession WriteSessions",
    },
)

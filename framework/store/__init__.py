"""The table store: Paimon's table format, read and written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.framework.store.codec.simple_stats import EMPTY_STATS, SimpleStats
    from lockgate.framework.store.commit.commit import commit_messages
    from lockgate.framework.store.commit.commit_request import CommitRequest, Overwrite
    from lockgate.framework.store.commit.message import CommitMessage
    from lockgate.framework.store.confidential.column_visibility import (
        column_marks,
        encrypted_columns,
        visibility,
    )
    from lockgate.framework.store.confidential.confidential_columns import secrets_of
    from lockgate.framework.store.confidential.exposures import Exposure, exposures
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
    from lockgate.framework.store.manifests.column_bounds import ColumnBounds
    from lockgate.framework.store.manifests.file_table import FileTable
    from lockgate.framework.store.manifests.index_manifest import IndexEntry, index_path
    from lockgate.framework.store.manifests.manifest import (
        DataFileMeta,
        FileKind,
        FileSource,
        ManifestEntry,
        ManifestFileMeta,
    )
    from lockgate.framework.store.merge.merge_options import merge_plan
    from lockgate.framework.store.merge.merge_plan import MergePlanJson
    from lockgate.framework.store.metadata.identifier import Identifier
    from lockgate.framework.store.metadata.rename import policy_name
    from lockgate.framework.store.metadata.snapshot import CommitKind, Snapshot
    from lockgate.framework.store.metadata.tag_files import Tag
    from lockgate.framework.store.pruning.candidates import candidate_of
    from lockgate.framework.store.pruning.split import Split
    from lockgate.framework.store.rows.bucket import assign_buckets
    from lockgate.framework.store.rows.row_kinds import KindsJson
    from lockgate.framework.store.scan.matching_rows import StripeRange
    from lockgate.framework.store.scan.read import FileReader
    from lockgate.framework.store.scan.read_request import ReadRequest, require_unrestricted
    from lockgate.framework.store.scan.readable_files import stored_entries, visible_entries
    from lockgate.framework.store.scan.scan import ScanPlan
    from lockgate.framework.store.scan.scan_source import ScanSource
    from lockgate.framework.store.scan.snapshot_selection import (
        SNAPSHOT_SOURCE,
        Between,
        Selection,
        number_called,
        selection_of,
        snapshot_called,
    )
    from lockgate.framework.store.scan.table_scan import TableScan
    from lockgate.framework.store.scan.table_selection import table_selection
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
        check_unselected,
        check_writable,
    )
    from lockgate.framework.store.schema.wider_types import can_widen, common_type
    from lockgate.framework.store.system.row_batches import batches_of
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

_HOMES = {
    "AddColumn": ".ddl.schema_changes",
    "Between": ".scan.snapshot_selection",
    "Catalog": ".tables.catalog",
    "ChangeComment": ".ddl.schema_changes",
    "ChangeDefault": ".ddl.schema_changes",
    "ChangeNullability": ".ddl.schema_changes",
    "ChangeType": ".ddl.schema_changes",
    "ColumnBounds": ".manifests.column_bounds",
    "CommitKind": ".metadata.snapshot",
    "CommitMessage": ".commit.message",
    "CommitRequest": ".commit.commit_request",
    "DataFileMeta": ".manifests.manifest",
    "DropColumn": ".ddl.schema_changes",
    "EMPTY_STATS": ".codec.simple_stats",
    "Exposure": ".confidential.exposures",
    "FileKind": ".manifests.manifest",
    "FileReader": ".scan.read",
    "FileSource": ".manifests.manifest",
    "FileTable": ".manifests.file_table",
    "Identifier": ".metadata.identifier",
    "IndexEntry": ".manifests.index_manifest",
    "IndexedField": ".schema.table_indexes",
    "KindsJson": ".rows.row_kinds",
    "ManifestEntry": ".manifests.manifest",
    "ManifestFileMeta": ".manifests.manifest",
    "MergePlanJson": ".merge.merge_plan",
    "MoveColumn": ".ddl.schema_changes",
    "Overwrite": ".commit.commit_request",
    "Position": ".ddl.schema_changes",
    "ReadRequest": ".scan.read_request",
    "RemoveOption": ".ddl.schema_changes",
    "RenameColumn": ".ddl.schema_changes",
    "Replacement": ".tables.replace",
    "SNAPSHOT_SOURCE": ".scan.snapshot_selection",
    "ScanPlan": ".scan.scan",
    "ScanSource": ".scan.scan_source",
    "Schema": ".schema.schema",
    "Selection": ".scan.snapshot_selection",
    "SetComment": ".ddl.schema_changes",
    "SetOption": ".ddl.schema_changes",
    "SimpleStats": ".codec.simple_stats",
    "Snapshot": ".metadata.snapshot",
    "Split": ".pruning.split",
    "StripeRange": ".scan.matching_rows",
    "Table": ".tables.table",
    "TableHandle": ".handle",
    "TableScan": ".scan.table_scan",
    "TableSchema": ".schema.schema",
    "Tag": ".metadata.tag_files",
    "TaskFile": ".write.task_results",
    "TaskResults": ".write.task_results",
    "WantedIndex": ".schema.file_indexes",
    "WriteOptions": ".write.write_session",
    "WritePlan": ".write.write_session",
    "WriteSession": ".write.write_session",
    "WriteSessions": ".write.write_session",
    "assign_buckets": ".rows.bucket",
    "batches_of": ".system.row_batches",
    "bounded_fields": ".schema.table_indexes",
    "can_widen": ".schema.wider_types",
    "candidate_of": ".pruning.candidates",
    "changes_of": ".ddl.merged_columns",
    "check_known_types": ".schema.unsupported_features",
    "check_readable": ".schema.unsupported_features",
    "check_unselected": ".schema.unsupported_features",
    "check_writable": ".schema.unsupported_features",
    "column_marks": ".confidential.column_visibility",
    "commit_messages": ".commit.commit",
    "common_type": ".schema.wider_types",
    "encrypted_columns": ".confidential.column_visibility",
    "expire_snapshots": ".maintenance.snapshot_expiry",
    "exposures": ".confidential.exposures",
    "grant": ".grants",
    "grant_by_name": ".grants",
    "has_table_indexes": ".schema.table_indexes",
    "hidden_from": ".grants",
    "index_path": ".manifests.index_manifest",
    "indexed_fields": ".schema.table_indexes",
    "is_of_manifests": ".schema.table_indexes",
    "merge_plan": ".merge.merge_options",
    "merged_columns": ".ddl.merged_columns",
    "number_called": ".scan.snapshot_selection",
    "policy_name": ".metadata.rename",
    "require_full_visibility": ".grants",
    "require_unrestricted": ".scan.read_request",
    "secrets_of": ".confidential.confidential_columns",
    "selection_of": ".scan.snapshot_selection",
    "snapshot_called": ".scan.snapshot_selection",
    "stored_entries": ".scan.readable_files",
    "table_selection": ".scan.table_selection",
    "value_kind_of": ".schema.file_indexes",
    "visibility": ".confidential.column_visibility",
    "visible_entries": ".scan.readable_files",
    "wanted_indexes": ".schema.file_indexes",
    "whole_refusal": ".grants",
}

__all__ = [
    "EMPTY_STATS",
    "SNAPSHOT_SOURCE",
    "AddColumn",
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
    "KindsJson",
    "ManifestEntry",
    "ManifestFileMeta",
    "MergePlanJson",
    "MoveColumn",
    "Overwrite",
    "Position",
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
    "StripeRange",
    "Table",
    "TableHandle",
    "TableScan",
    "TableSchema",
    "Tag",
    "TaskFile",
    "TaskResults",
    "WantedIndex",
    "WriteOptions",
    "WritePlan",
    "WriteSession",
    "WriteSessions",
    "assign_buckets",
    "batches_of",
    "bounded_fields",
    "can_widen",
    "candidate_of",
    "changes_of",
    "check_known_types",
    "check_readable",
    "check_unselected",
    "check_writable",
    "column_marks",
    "commit_messages",
    "common_type",
    "encrypted_columns",
    "expire_snapshots",
    "exposures",
    "grant",
    "grant_by_name",
    "has_table_indexes",
    "hidden_from",
    "index_path",
    "indexed_fields",
    "is_of_manifests",
    "merge_plan",
    "merged_columns",
    "number_called",
    "policy_name",
    "require_full_visibility",
    "require_unrestricted",
    "secrets_of",
    "selection_of",
    "snapshot_called",
    "stored_entries",
    "table_selection",
    "value_kind_of",
    "visibility",
    "visible_entries",
    "wanted_indexes",
    "whole_refusal",
]

__getattr__ = lazy_attributes(__name__, _HOMES)

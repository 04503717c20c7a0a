"""Data files of others that become files of a table as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lockgate.framework.io import FileSystem, link_or_copy
from lockgate.framework.orc import ColumnStatistics
from lockgate.framework.store.codec.simple_stats import SimpleStats
from lockgate.framework.store.commit.message import CommitMessage
from lockgate.framework.store.handle import TableHandle
from lockgate.framework.store.manifests.manifest import DataFileMeta, FileSource
from lockgate.framework.store.metadata.paths import new_data_file_name
from lockgate.framework.store.rows.file_statistics import StatsMode, stats_modes, truncate_max
from lockgate.framework.store.schema.schema import TableSchema, wall_clock_millis
from lockgate.framework.types import Kind


@dataclass(frozen=True)
class ForeignFile:
    """A file of others, with what its footer says of its columns; without any, nothing is known of them."""

    file_system: FileSystem
    path: str
    size: int
    rows: int
    statistics: Mapping[str, ColumnStatistics]

    def adopt(
        self, table: TableHandle, partition: tuple[Any, ...], number: int, *, suffix: str
    ) -> CommitMessage:
        """Give it a second name in the table's folder, a copy where links are impossible, and describe it."""
        columns, statistics = self._kept(table.schema)
        meta = DataFileMeta(
            file_name=new_data_file_name(number, suffix=suffix),
            file_size=self.size,
            row_count=self.rows,
            value_stats=statistics,
            value_stats_cols=columns,
            min_sequence_number=0,
            max_sequence_number=max(self.rows - 1, 0),
            schema_id=table.schema.id,
            creation_time_millis=wall_clock_millis(),
            file_source=FileSource.APPEND,
        )
        link_or_copy(
            self.file_system, self.path, table.file_system, table.paths.data_file(partition, 0, meta)
        )
        return CommitMessage(partition, 0, table.schema.bucket_count, (meta,))

    def _kept(self, schema: TableSchema) -> tuple[tuple[str, ...], SimpleStats]:
        """Return the statistics that a writer of the table would have kept."""
        names, low, high, nulls = [], [], [], []
        for name, mode in stats_modes(schema).items():
            if name in schema.partition_keys or schema.field(name).type.kind in (Kind.FLOAT, Kind.DOUBLE):
                # ORC's bounds of floating-point columns may leave NaN out.
                continue
            statistics = self.statistics.get(name)
            if statistics is None and self.statistics:
                statistics = ColumnStatistics(None, None, self.rows, 0)  # a column that the file lacks
            if statistics is None or statistics.null_count is None:
                continue
            bounds = _bounds(statistics, mode)
            names.append(name)
            low.append(bounds[0])
            high.append(bounds[1])
            nulls.append(statistics.null_count)
        return tuple(names), SimpleStats(tuple(low), tuple(high), tuple(nulls))


def _bounds(statistics: ColumnStatistics, mode: StatsMode) -> tuple[Any, Any]:
    if not mode.bounds or statistics.minimum is None or statistics.maximum is None:
        return None, None
    if mode.length is None or not isinstance(statistics.minimum, str | bytes):
        return statistics.minimum, statistics.maximum
    high = truncate_max(statistics.maximum, mode.length)
    return (None, None) if high is None else (statistics.minimum[: mode.length], high)

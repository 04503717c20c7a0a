"""Data files that the connector reads: ORC, and Parquet unless structs in them have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.errors import UnsupportedError, UnsupportedFormatError
from lockgate.framework.store.formats import FileFormat, format_of
from lockgate.framework.store.schema.evolution import changed_columns

if TYPE_CHECKING:
    from lockgate.framework.store.scan.scan import ScanPlan
    from lockgate.framework.store.table import Table


def check_formats(table: Table, planned: ScanPlan) -> None:
    """Raise UnsupportedFormatError or UnsupportedError, naming a file, for one that only Python can read."""
    for split in planned.splits:
        for file in split.files:
            kind = format_of(file.file_name)
            if kind is FileFormat.AVRO:
                raise UnsupportedFormatError(
                    f"{file.file_name} of table {table.identifier}: Spark cannot read Avro data files yet; "
                    "Table.read() in Python can"
                )
            if kind is FileFormat.PARQUET and file.schema_id != planned.schema.id:
                changed = changed_columns(planned.schema, planned.schemas[file.schema_id])
                if changed:
                    raise UnsupportedError(
                        f"{file.file_name} of table {table.identifier} was written before fields inside "
                        f"column {changed[0]!r} changed: Spark cannot read that from Parquet; "
                        "Table.read() in Python can"
                    )

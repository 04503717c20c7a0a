"""The same rows in plain Spark: Parquet files without push-down, under a table and a view of Spark's own."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from fuzz.kinds import Column

ROW = "row_number_"
CONFS = {
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
}


class Plain:
    """A place for tables of plain Spark; each has a hidden column that numbers its rows."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self._numbers = itertools.count()
        for name, value in CONFS.items():
            spark.conf.set(name, value)

    def show(self, columns: Sequence[Column], rows: pa.Table) -> Shown:
        """A table with these rows and a view of it without the numbers."""
        return self._table(columns, rows.append_column(ROW, pa.array(range(rows.num_rows), pa.int64())))

    def empty(self, columns: Sequence[Column]) -> Shown:
        """A table without rows, to insert into."""
        return self._table(columns)

    def _table(self, columns: Sequence[Column], rows: pa.Table | None = None) -> Shown:
        name = f"plain_{next(self._numbers)}"
        folder = self.folder / name
        folder.mkdir(parents=True)
        if rows is not None:
            # Before Spark looks into the folder, for it remembers which files are there.
            pq.write_table(rows, folder / "rows.parquet")
        names = ", ".join(column.name for column in columns)
        # Without NOT NULL: that is checked by the model, plain Spark does not for files.
        ddl = ", ".join(f"{column.name} {column.kind.sql}" for column in columns)
        self.spark.sql(
            f"CREATE TABLE spark_catalog.default.{name} ({ddl}, {ROW} BIGINT) "
            f"USING parquet LOCATION '{folder.as_uri()}'"
        )
        self.spark.sql(
            f"CREATE TEMPORARY VIEW {name}_view AS SELECT {names} FROM spark_catalog.default.{name}"
        )
        return Shown(self.spark, name, folder, [column.name for column in columns])


class Shown:
    """A table of plain Spark and its view."""

    def __init__(self, spark: SparkSession, name: str, folder: Path, columns: list[str]) -> None:
        self.spark, self.folder, self.columns = spark, folder, columns
        self.table, self.view = f"spark_catalog.default.{name}", f"{name}_view"

    def rows(self) -> pa.Table:
        """All columns and the numbers of the rows, as plain Spark reads them."""
        self.spark.sql(f"REFRESH TABLE {self.table}")
        return self.spark.sql(f"SELECT {', '.join(self.columns)}, {ROW} FROM {self.table}").toArrow()

    def drop(self) -> None:
        """Remove it with its files."""
        self.spark.catalog.dropTempView(self.view)
        self.spark.sql(f"DROP TABLE {self.table}")
        shutil.rmtree(self.folder, ignore_errors=True)

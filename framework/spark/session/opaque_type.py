"""Python's side of the connector's type of columns that Spark cannot hold, by which PySpark shows schemas."""

from __future__ import annotations

from pyspark.sql.types import DataType, NullType, UserDefinedType


class OpaqueType(UserDefinedType):
    """A type that Spark does not have; the column's values are neither read nor written."""

    @classmethod
    def sqlType(cls) -> DataType:  # noqa: N802 - Spark's name
        return NullType()

    @classmethod
    def module(cls) -> str:
        return cls.__module__

    @classmethod
    def scalaUDT(cls) -> str:  # noqa: N802 - Spark's name
        return "io.lockgate.spark.bridge.OpaqueType"

    def simpleString(self) -> str:  # noqa: N802 - Spark's name
        return "opaque"

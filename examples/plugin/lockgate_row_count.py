from dataclasses import dataclass

from lockgate.plugins import TableName, TypedProcedure, hookimpl


@dataclass(frozen=True)
class Arguments:
    table: TableName


@dataclass(frozen=True)
class PartitionRows:
    partition: str
    row_count: int


class RowCount(TypedProcedure[Arguments, PartitionRows]):
    """Count the rows of each partition of a table."""

    name = "row_count"

    def run(self, context, arguments):
        table = context.table(arguments.table)
        keys = list(table.schema.partition_keys)
        for row in table.read(columns=keys).group_by(keys).aggregate([([], "count_all")]).to_pylist():
            yield PartitionRows(",".join(f"{key}={row[key]}" for key in keys), row["count_all"])


@hookimpl
def lockgate_procedures():
    return [RowCount()]

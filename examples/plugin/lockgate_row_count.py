"""A whole plugin: a procedure that counts the rows of each partition."""

from lockgate.plugins import Parameter, Procedure, hookimpl


class RowCount(Procedure):
    name = "row_count"
    description = "Count the rows of each partition of a table."
    parameters = (Parameter("table", "STRING", doc="the table, 'database.table'"),)
    result = (("partition", "STRING"), ("row_count", "BIGINT"))

    def call(self, context, table):
        found = context.table(table)
        keys = list(found.schema.partition_keys)
        rows = found.read(columns=keys).group_by(keys).aggregate([([], "count_all")]).to_pylist()
        return sorted((",".join(f"{key}={row[key]}" for key in keys), row["count_all"]) for row in rows)


@hookimpl
def lockgate_procedures():
    return [RowCount()]

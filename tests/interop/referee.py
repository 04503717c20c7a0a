"""What pypaimon makes of a table; runs in a Python of its own, which has pypaimon instead of lockgate.

referee.py read WAREHOUSE TABLE OUT              the rows, as an Arrow file
referee.py write WAREHOUSE TABLE IN [OVERWRITE]  write the rows of an Arrow file, by ten at a time
referee.py create WAREHOUSE TABLE IN OPTIONS     create a table of the columns in an Arrow file; OPTIONS is
                                                 JSON {"primary_keys", "partition_keys", "options"}
referee.py read_all TABLES FOLDER                read the tables of a JSON list of (warehouse, table) into
                                                 FOLDER/<number>.arrow; prints a JSON object of what failed
referee.py read_tag WAREHOUSE TABLE TAG OUT      the rows at a tag, as an Arrow file
referee.py create_tag WAREHOUSE TABLE TAG ID     tag a snapshot
referee.py alter WAREHOUSE TABLE CHANGES         change the schema; CHANGES is a JSON list of lists: (add,
                                                 name, type), (rename, name, new name), (drop, name), (type,
                                                 name, type), (comment, name, text), (move, name, after)
referee.py refer WAREHOUSE TABLE METHOD [...]    call a method of the table's branches or of the table itself
referee.py buckets IN OUT COUNT                  the bucket of each row by each of its columns
referee.py serve                                 do what each line of standard input says, a JSON list of one
                                                 of the above; answer each by a line, an error's text or ""
"""

from __future__ import annotations

import json
import sys
import traceback

import pyarrow as pa
from pypaimon import CatalogFactory, Schema


def load(path):
    with pa.ipc.open_file(path) as file:
        return file.read_all()


def store(table, path):
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table)


def table_of(warehouse, name):
    return CatalogFactory.create({"warehouse": warehouse}).get_table(name)


def read(warehouse, name, out):
    read_from(table_of(warehouse, name), out)


def read_tag(warehouse, name, tag, out):
    read_from(table_of(warehouse, name).copy({"scan.tag-name": tag}), out)


def create_tag(warehouse, name, tag, snapshot_id):
    table_of(warehouse, name).create_tag(tag, snapshot_id=int(snapshot_id), time_retained="2 d")


def read_from(table, out):
    builder = table.new_read_builder()
    splits = builder.new_scan().plan().splits()
    store(builder.new_read().to_arrow(splits), out)


def read_all(tables, folder):
    failed = {}
    with open(tables) as file:
        named = json.load(file)
    for number, (warehouse, name) in enumerate(named):
        try:
            read(warehouse, name, f"{folder}/{number}.arrow")
        except Exception as error:
            failed[str(number)] = f"{type(error).__name__}: {error}"
    print(json.dumps(failed))


def write(warehouse, name, source, overwrite=""):
    builder = table_of(warehouse, name).new_batch_write_builder()
    if overwrite:
        builder = builder.overwrite()
    writer, commit = builder.new_write(), builder.new_commit()
    writer.write_arrow(load(source))
    commit.commit(writer.prepare_commit())
    writer.close()
    commit.close()


def create(warehouse, name, source, options):
    catalog = CatalogFactory.create({"warehouse": warehouse})
    catalog.create_database(name.split(".")[0], True)
    catalog.create_table(name, Schema.from_pyarrow_schema(load(source).schema, **json.loads(options)), False)


def alter(warehouse, name, changes):
    from pypaimon.schema.data_types import DataTypeParser
    from pypaimon.schema.schema_change import Move, SchemaChange

    def change(kind, path, value=None):
        column = path.split(".")
        if kind == "add":
            return SchemaChange.add_column(column, DataTypeParser.parse_data_type(value))
        if kind == "type":
            return SchemaChange.update_column_type(column, DataTypeParser.parse_data_type(value))
        if kind == "move":
            return SchemaChange.update_column_position(Move.after(path, value))
        if kind == "comment":
            return SchemaChange.update_column_comment(column, value)
        return (
            SchemaChange.rename_column(column, value)
            if kind == "rename"
            else SchemaChange.drop_column(column)
        )

    CatalogFactory.create({"warehouse": warehouse}).alter_table(
        name, [change(*one) for one in json.loads(changes)], False
    )


def refer(warehouse, name, method, *arguments):
    table = table_of(warehouse, name)
    branches = table.branch_manager()
    getattr(branches if hasattr(branches, method) else table, method)(*arguments)


def buckets(source, out, count):
    from pypaimon.schema.data_types import PyarrowFieldParser
    from pypaimon.table.row.generic_row import GenericRow, GenericRowSerializer
    from pypaimon.write.row_key_extractor import _bucket_from_hash, _hash_bytes_by_words

    table = load(source)
    found = {}
    for field in PyarrowFieldParser.to_paimon_schema(table.schema.remove_metadata()):
        # Without the number of fields, which stands before the row.
        rows = (
            GenericRowSerializer.to_bytes(GenericRow([value], [field]))[4:]
            for value in table[field.name].to_pylist()
        )
        found[field.name] = [_bucket_from_hash(_hash_bytes_by_words(row), int(count)) for row in rows]
    store(pa.table(found), out)


def serve():
    answers = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        problem = ""
        try:
            globals()[name](*arguments)
        except Exception:
            problem = traceback.format_exc()
        print(json.dumps(problem), file=answers, flush=True)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])

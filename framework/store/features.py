"""Features of tables that other engines wrote, and which of them forbid writing here.

Writing past a feature would break what the table promises to its other readers, so it is refused.
"""

from __future__ import annotations

from lockgate.errors import UnsupportedFormatError
from lockgate.framework.options import (
    BUCKET_FUNCTION,
    CHANGELOG_PRODUCER,
    DATA_EVOLUTION,
    DELETION_VECTORS,
    FILE_FORMAT,
    MERGE_ENGINE,
    ROW_TRACKING,
)
from lockgate.framework.store.schema import TableSchema

FILE_FORMAT_WRITTEN = "orc"
MERGE_ENGINE_WRITTEN = "deduplicate"

# Options of others that say where files go, or what rows mean: to write past them would leave files that
# their readers do not find, and rows of another kind than they ask for.
DATA_DIRECTORY = "data-file.path-directory"
_MUST_BE_UNSET = (DATA_DIRECTORY, "rowkind.field")


def check_writable(schema: TableSchema) -> None:
    """Raise UnsupportedFormatError, naming the feature, if the table cannot be written here."""
    options = schema.table_options
    for option in (DELETION_VECTORS, ROW_TRACKING, DATA_EVOLUTION):
        if options.get_option(option):
            raise UnsupportedFormatError(f"writing tables with option {option.key!r} is not supported")
    for key in _MUST_BE_UNSET:
        if schema.options.get(key):
            raise UnsupportedFormatError(f"writing tables with option {key!r} is not supported")
    wanted = {FILE_FORMAT: FILE_FORMAT_WRITTEN, BUCKET_FUNCTION: "default"}
    if schema.has_primary_key:
        wanted |= {MERGE_ENGINE: MERGE_ENGINE_WRITTEN, CHANGELOG_PRODUCER: "none"}
    for choice, supported in wanted.items():
        value = options.get_option(choice)
        if value.lower() != supported:
            raise UnsupportedFormatError(
                f"writing tables with {choice.key!r} = {value!r} is not supported, only with {supported!r}"
            )
    if schema.has_primary_key and schema.bucket_count < 1:
        raise UnsupportedFormatError(
            f"the table has dynamic buckets (bucket = {schema.bucket_count}); only tables with a fixed "
            "number of buckets can be written"
        )

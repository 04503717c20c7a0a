"""The options of a table that say where its rows and files lie: keys, partitions, buckets, folders."""

from __future__ import annotations

from lockgate.framework.options.option import (
    Change,
    Option,
    _bucket_count,
    at_least,
    parse_bool,
    parse_folder,
    parse_names,
    parse_whole,
)

_NO_NAMES: tuple[str, ...] = ()

PRIMARY_KEY = Option(
    "primary-key",
    parse_names,
    _NO_NAMES,
    "columns of the primary key, comma-separated",
    change=Change.AT_CREATION,
)
PARTITION = Option(
    "partition", parse_names, _NO_NAMES, "partition columns, comma-separated", change=Change.AT_CREATION
)
BUCKET = Option(
    "bucket",
    _bucket_count,
    -1,
    "buckets of each partition; -1: none (append tables) or dynamic (key tables); new key tables get 1",
)
BUCKET_KEY = Option(
    "bucket-key",
    parse_names,
    _NO_NAMES,
    "columns that choose the bucket; default: the primary key",
    change=Change.WITHOUT_ROWS,
)
BUCKET_FUNCTION = Option(
    "bucket-function.type",
    str,
    "default",
    "function that computes the bucket",
)
DYNAMIC_BUCKET_TARGET = Option(
    "dynamic-bucket.target-row-num",
    at_least(1),
    2_000_000,
    "number of keys at which a dynamic bucket is full",
)
DYNAMIC_BUCKET_MAX = Option(
    "dynamic-bucket.max-buckets",
    parse_whole,
    -1,
    "largest number of dynamic buckets of a partition; -1: no limit",
)
PARTITION_DEFAULT_NAME = Option(
    "partition.default-name",
    str,
    "__DEFAULT_PARTITION__",
    "folder name of a null or empty partition value",
    change=Change.WITHOUT_ROWS,
)
PARTITION_LEGACY_NAME = Option(
    "partition.legacy-name",
    parse_bool,
    True,
    "partition folders show dates as days since 1970, as Paimon does",
    change=Change.WITHOUT_ROWS,
)
DATA_FOLDER = Option(
    "data-file.path-directory",
    parse_folder,
    "",
    "folder, within the table's, that holds the data files of all partitions",
    change=Change.WITHOUT_ROWS,
)

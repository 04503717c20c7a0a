"""The options of a table that say how a scan is cut into tasks, as Paimon names them."""

from __future__ import annotations

from lockgate.framework.options.option import Option, parse_size, parse_some_size

SOURCE_SPLIT_TARGET_SIZE = Option(
    "source.split.target-size",
    parse_some_size,
    128 * 2**20,
    "target bytes per task; several tasks read a larger file, stripe by stripe",
)
SOURCE_SPLIT_OPEN_FILE_COST = Option(
    "source.split.open-file-cost",
    parse_size,
    4 * 2**20,
    "minimum size charged per file when packing files into tasks",
)
SOURCE_SPLIT_DRIVER_MAX_SIZE = Option(
    "source.split.driver-max-size",
    parse_size,
    16 * 2**20,
    "bytes of files, or of stripes that indexes leave, up to which the driver reads them itself; 0: never",
)

"""The options of a table that say where its files lie."""

from __future__ import annotations

from lockgate.framework.options.option import Option, parse_folder

DATA_FOLDER = Option(
    "data-file.path-directory",
    parse_folder,
    "",
    "folder, within the table's, that holds the data files of all partitions",
)

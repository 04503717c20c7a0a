"""Format and compression of the data files that a table's writers make, at each level.

Source: Paimon's `file.format`, `file.compression` and their options `.per.level`. Encryption is ORC's alone,
so a table with `orc.encrypt` has files of no other format.
"""

from __future__ import annotations

from dataclasses import dataclass

from lockgate.errors import OptionError
from lockgate.framework import options as table_options
from lockgate.framework.options import TableOptions

ORC, PARQUET = "orc", "parquet"

# Compressions by the names that Paimon's writers of each format take.
_COMPRESSIONS = {
    ORC: ("zstd", "snappy", "zlib", "lz4", "none"),
    PARQUET: ("zstd", "snappy", "gzip", "lz4", "none"),
}


@dataclass(frozen=True)
class WrittenFormat:
    """The format of new data files and their compression, both by Paimon's names."""

    name: str
    compression: str


def written_format(options: TableOptions, level: int = 0) -> WrittenFormat:
    """Return how files of a level are written; OptionError for an option that is malformed."""
    name = options.get_option(table_options.FILE_FORMAT_PER_LEVEL).get(
        level, options.get_option(table_options.FILE_FORMAT)
    )
    chosen = options.get_option(table_options.FILE_COMPRESSION_PER_LEVEL).get(level)
    chosen = chosen or (options.get_option(table_options.ORC_COMPRESS) if name == ORC else "")
    return WrittenFormat(name, chosen or options.get_option(table_options.FILE_COMPRESSION))


def written_formats(options: TableOptions) -> list[WrittenFormat]:
    """Return how files of all levels are written, without repetitions."""
    levels = {
        *options.get_option(table_options.FILE_FORMAT_PER_LEVEL),
        *options.get_option(table_options.FILE_COMPRESSION_PER_LEVEL),
    }
    # A level that no option names stands for all others.
    return list(dict.fromkeys(written_format(options, level) for level in (-1, *sorted(levels))))


def check_formats(options: TableOptions) -> None:
    """Raise OptionError if files of some level cannot be written, or not encrypted as the table says."""
    encrypts = bool(options.get_option(table_options.ORC_ENCRYPT).strip())
    for each in written_formats(options):
        if each.name not in _COMPRESSIONS:
            raise OptionError(
                f"option 'file.format' cannot be {each.name!r}: data files are written as "
                f"{' or '.join(_COMPRESSIONS)}"
            )
        if encrypts and each.name != ORC:
            raise OptionError(
                f"option 'orc.encrypt' cannot stand with {each.name} files, which hold every value in the "
                f"clear: set 'file.format' = {ORC!r} and leave no other format in 'file.format.per.level'"
            )
        if each.compression not in _COMPRESSIONS[each.name]:
            raise OptionError(
                f"option 'file.compression' cannot be {each.compression!r} for {each.name} files: only "
                f"{', '.join(_COMPRESSIONS[each.name])}"
            )

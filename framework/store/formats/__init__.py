"""Data files as columns, whatever their format: ORC, Parquet or Avro, as the end of a file's name says."""

from lockgate.framework.store.formats.data_file import DataFile, FileFormat, format_of
from lockgate.framework.store.formats.plain_data_files import open_plain_file

__all__ = ["DataFile", "FileFormat", "format_of", "open_plain_file"]

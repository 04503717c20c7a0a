"""The records of manifests, manifest lists and index manifests, whichever format the table keeps them in.

Source: Paimon's option `manifest.format`. The file's first bytes say the format, as a table may have had
another one before. ORC and Parquet files hold the same columns as Avro's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pyarrow as pa

from lockgate.errors import CorruptFileError
from lockgate.framework.store.avro import read_container

_ORC, _PARQUET = b"ORC", b"PAR1"


def read_records(data: bytes, path: str) -> list[dict[str, Any]]:
    """Return the records of a metadata file.

    Raises CorruptFileError if it is of no known format, truncated or damaged, and UnsupportedFormatError if
    its codec is not available, both naming `path`.
    """
    if data.startswith(_PARQUET):
        return _columnar(data, path, _read_parquet)
    if data.startswith(_ORC):
        return _columnar(data, path, _read_orc)
    return read_container(data, path)


def _columnar(data: bytes, path: str, read: Callable[[pa.BufferReader], pa.Table]) -> list[dict[str, Any]]:
    try:
        return cast("list[dict[str, Any]]", read(pa.BufferReader(data)).to_pylist())
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise CorruptFileError(f"{path} is damaged or truncated: {reason}") from None


def _read_parquet(source: pa.BufferReader) -> pa.Table:
    import pyarrow.parquet as pq

    return pq.read_table(source)


def _read_orc(source: pa.BufferReader) -> pa.Table:
    import pyarrow.orc

    return pyarrow.orc.read_table(source)

"""The records of manifests, manifest lists and index manifests, whichever format the table keeps them in.

Source: Paimon's option `manifest.format`. The file's first bytes say the format, as a table may have had
another one before. ORC and Parquet files hold the same columns as Avro's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import pyarrow as pa

from lockgate.errors import CorruptFileError
from lockgate.framework.io import most_unpacked, too_large
from lockgate.framework.store.codec.avro import read_container

_ORC, _PARQUET = b"ORC", b"PAR1"
_BATCH_ROWS = 1024


def read_records(data: bytes, path: str) -> list[dict[str, Any]]:
    """Return the records of a metadata file.

    Raises CorruptFileError if it is of no known format, truncated or damaged, or takes more memory than
    metadata may (`io.limits`), and UnsupportedFormatError if its codec is not available, both naming `path`.
    """
    if data.startswith(_PARQUET):
        return _columnar(data, path, _parquet_batches)
    if data.startswith(_ORC):
        return _columnar(data, path, _orc_batches)
    return read_container(data, path)


def _columnar(
    data: bytes, path: str, batches: Callable[[pa.BufferReader], Iterable[pa.RecordBatch]]
) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    left = most = most_unpacked(len(data))
    try:
        for batch in batches(pa.BufferReader(data)):
            left -= batch.nbytes + batch.num_rows
            if left < 0:
                raise too_large(path, most, "unpacks to")
            records += batch.to_pylist()
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise CorruptFileError(f"{path} is damaged or truncated: {reason}") from None
    return records


def _parquet_batches(source: pa.BufferReader) -> Iterable[pa.RecordBatch]:
    import pyarrow.parquet as pq

    return cast("Iterable[pa.RecordBatch]", pq.ParquetFile(source).iter_batches(_BATCH_ROWS))


def _orc_batches(source: pa.BufferReader) -> Iterable[pa.RecordBatch]:
    import pyarrow.orc

    file = pyarrow.orc.ORCFile(source)
    return (file.read_stripe(stripe) for stripe in range(file.nstripes))

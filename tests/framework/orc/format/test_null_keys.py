"""Maps with null keys, as Java writes them for the mask `nullify`, raise an error and do not abort."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.orc
import pytest

from lockgate.errors import UnsupportedError
from lockgate.framework.orc import EncryptedOrcFile
from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.layout import INDEX_KINDS, MAGIC
from lockgate.framework.orc.format.stripe import read_stripe
from lockgate.framework.orc.format.tail import read_tail
from lockgate.framework.orc.sources.file_source import MemorySource
from lockgate.pushdown import col

ROWS = 100
# In the file that Arrow writes: 1 id, 2 map, 3 its keys, 4 its values, 5 list, 6 its elements.
KEY, ELEMENT = 3, 6


@pytest.fixture(scope="module")
def null_keys() -> bytes:
    """A file with null map keys, made from a list with null elements, since Arrow does not write such
    maps.
    """
    table = pa.table(
        {
            "id": range(ROWS),
            "map": pa.array([[("a", 1), ("b", 2)]] * ROWS, pa.map_(pa.string(), pa.int64())),
            "list": pa.array([[None, None]] * ROWS, pa.list_(pa.string())),
        }
    )
    sink = io.BytesIO()
    pyarrow.orc.write_table(table, sink, compression="uncompressed")
    source = MemorySource(sink.getvalue(), "what Arrow wrote")
    tail = read_tail(source)
    stripe = read_stripe(source, tail, 0)

    data = bytearray(MAGIC)
    footer = proto.StripeFooter()
    footer.CopyFrom(stripe.footer)
    footer.columns[KEY].CopyFrom(stripe.footer.columns[ELEMENT])
    del footer.streams[:], footer.columns[5:]
    for stream in stripe.streams:
        if stream.column in (KEY, 5) or stream.kind in INDEX_KINDS:
            continue
        column = KEY if stream.column == ELEMENT else stream.column
        footer.streams.add(kind=stream.kind, column=column, length=stream.length)
        data += bytes(source.read_at(stream.offset, stream.length))
    stored = footer.SerializeToString()
    place = {"offset": len(MAGIC), "index_length": 0, "data_length": len(data) - len(MAGIC)}
    data += stored

    whole = proto.Footer()
    whole.CopyFrom(tail.footer)
    del whole.types[5:], whole.types[0].subtypes[2:], whole.types[0].field_names[2:]
    del whole.statistics[:], whole.stripes[:]
    whole.stripes.add(**place, footer_length=len(stored), number_of_rows=ROWS)
    whole.content_length, whole.row_index_stride = len(data), 0
    content = whole.SerializeToString()
    postscript = proto.PostScript()
    postscript.CopyFrom(tail.postscript)
    postscript.footer_length, postscript.metadata_length = len(content), 0
    ending = postscript.SerializeToString()
    return bytes(data) + content + ending + bytes([len(ending)])


def test_maps_with_null_keys_are_refused(null_keys: bytes) -> None:
    with EncryptedOrcFile(null_keys) as file:
        for read in (
            file.read,
            lambda: list(file.iter_batches()),
            lambda: file.read(predicate=col("id") == 3),
        ):
            with pytest.raises(UnsupportedError, match="'map' of <bytes> has a map with null keys"):
                read()


def test_the_other_columns_are_read(null_keys: bytes) -> None:
    with EncryptedOrcFile(null_keys) as file:
        assert file.read(["id"]).to_pydict() == {"id": list(range(ROWS))}

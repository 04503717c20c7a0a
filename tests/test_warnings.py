"""Warnings point at the line of the user's program."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.errors import MaskedDataWarning, warn_user
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.store import Catalog, Schema

ROWS = pa.table({"id": [1], "ssn": ["1"]})


def test_the_line_that_reads_a_masked_column(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path, keys=MemoryKeyProvider({"pii": b"0" * 16}))
    catalog.create_namespace("db")
    schema = Schema.from_arrow(ROWS.schema, options={"orc.encrypt": "pii:ssn"})
    catalog.create_table("db.t", schema).append(ROWS)
    table = Catalog(tmp_path).load_table("db.t")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table.read()
        list(table.read_batches())
    source = Path(__file__).read_text().splitlines()
    assert [each.category for each in caught] == [MaskedDataWarning] * 2
    assert {each.filename for each in caught} == {__file__}
    lines = [source[each.lineno - 1].strip() for each in caught]
    assert lines == ["table.read()", "list(table.read_batches())"]


def test_a_thread_without_a_line_shows_where_the_program_waits() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # A thread that has no frame but those of threads, as the ones that answer Spark.
        thread = threading.Thread(target=warn_user, args=("x", MaskedDataWarning))
        thread.start()
        thread.join()
    assert [each.filename for each in caught] == [__file__]


def test_a_warning_can_be_made_an_error() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(MaskedDataWarning):
            warn_user("x", MaskedDataWarning)

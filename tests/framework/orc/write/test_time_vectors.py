"""Times that ORC supports: vectors of `tests/fixtures/orc_times.json`, which the connector runs too."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.errors import UnsupportedError
from lockgate.framework.orc import EncryptedOrcFile, write_table
from lockgate.framework.orc.read.pre_1970 import EarlyTimes

VECTOR = json.loads((Path(__file__).parents[3] / "fixtures" / "orc_times.json").read_text())


def table(micros: list[int]) -> pa.Table:
    return pa.table({"c": pa.array(micros, pa.timestamp("us"))})


def test_supported_times_round_trip() -> None:
    sink = io.BytesIO()
    write_table(table(VECTOR["held"]), sink)
    with EncryptedOrcFile(sink, timestamp_unit="us") as file:
        assert file.read()["c"].cast(pa.int64()).to_pylist() == VECTOR["held"]


@pytest.mark.parametrize("micros", VECTOR["refused"])
def test_unsupported_times_are_refused(micros: int) -> None:
    with pytest.raises(UnsupportedError, match="1970"):
        EarlyTimes(table([micros]), {"c": 1}, {"c": "c"})
    with pytest.raises(UnsupportedError, match="column 'c'"):
        write_table(table([micros]), io.BytesIO())

"""Columns and masks that Spark's tasks support."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lockgate.framework.orc import parse_encryption
from lockgate.framework.orc.encryption.encryption_options import Encryption, Mask
from lockgate.framework.orc.masks.java_support import WRITTEN, why_not_java
from lockgate.framework.types import (
    STRING,
    DataField,
    DataType,
    Kind,
    array,
    decimal,
    fields_from_arrow,
    map_of,
    row,
    sized,
    timestamp,
    to_arrow,
)

SHORT = sized(Kind.VARCHAR, 8)
PAIR = row((DataField(1, "a", sized(Kind.CHAR, 5)), DataField(2, "b", STRING)))


def reason(data_type: DataType, encrypt: str, mask: str) -> str | None:
    field = DataField(0, "c", data_type)
    schema = pa.schema([pa.field("c", to_arrow(field.type))])
    return why_not_java(parse_encryption(encrypt, mask, schema), [field])


@pytest.mark.parametrize(
    ("data_type", "encrypt", "mask"),
    [
        (STRING, "pii:c", "redact,Xx9:c"),
        (sized(Kind.VARCHAR, 64), "pii:c", "sha256:c"),
        (SHORT, "pii:c", "redact:c"),
        (array(PAIR), "pii:c._elem.a", "nullify:c._elem.a"),
        (map_of(STRING, decimal(4, 2)), "pii:c", "sha256:c;redact:c._value"),
        (timestamp(6), "pii:c", "redact:c"),
    ],
)
def test_masks_that_java_writes(data_type: DataType, encrypt: str, mask: str) -> None:
    assert reason(data_type, encrypt, mask) is None


@pytest.mark.parametrize(
    ("data_type", "encrypt", "mask", "column"),
    [
        (sized(Kind.VARCHAR, 63), "pii:c", "sha256:c", "'c' of type VARCHAR"),
        (PAIR, "pii:c", "sha256:c", "'c.a' of type CHAR"),
        (PAIR, "pii:c.a", "sha256:c.a", "'c.a' of type CHAR"),
        (array(SHORT), "pii:c", "redact:c;sha256:c._elem", "'c._elem' of type VARCHAR"),
    ],
)
def test_a_digest_that_java_would_truncate(data_type: DataType, encrypt: str, mask: str, column: str) -> None:
    found = reason(data_type, encrypt, mask)
    assert found is not None
    assert column in found
    assert "declare the column as STRING" in found


def test_java_has_no_masks_of_plugins() -> None:
    fields = fields_from_arrow(pa.schema([("c", pa.string()), ("d", pa.string())]))
    found = why_not_java(Encryption({"d": "pii"}, {"d": Mask("first", ("3",))}), fields)
    assert found is not None
    assert found.startswith(
        "column 'd' of type STRING cannot have the mask 'first,3': Spark encrypts by Java"
    )
    assert "nullify, redact or sha256" in found


def test_the_table_has_every_flat_type() -> None:
    nested = {Kind.ARRAY, Kind.MAP, Kind.ROW}
    assert set(WRITTEN) == {"nullify", "redact", "sha256"}
    assert WRITTEN["nullify"] == set(Kind) - nested

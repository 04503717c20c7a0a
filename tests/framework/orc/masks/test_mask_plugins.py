"""Masks of plugins, and the conformance of Apache's masks."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import OptionError, PluginError
from lockgate.framework.orc import parse_encryption
from lockgate.framework.orc.format.column_paths import ColumnTree
from lockgate.framework.orc.masks.masks import STANDARD, ColumnMasks
from lockgate.framework.plugins import MaskFunction, hookimpl, plugins, register
from lockgate.framework.testing.mask_suite import MaskConformance


def masked_column(values: pa.Array, encrypt: str, mask: str | None) -> pa.ChunkedArray:
    schema = pa.schema([pa.field("c", values.type)])
    masks = ColumnMasks(parse_encryption(encrypt, mask, schema), tree := ColumnTree(schema))
    masked = masks.mask_column(tree.top[0], pa.chunked_array([values]))
    assert (masked.type, len(masked)) == (values.type, len(values))
    masked.validate(full=True)
    return masked


def shout(parameters: Sequence[str]) -> MaskFunction:
    """Strings become a number of exclamation marks, the mask's parameter."""
    count = int(parameters[0]) if parameters else 1

    def mask(values: pa.Array) -> pa.Array:
        if not pa.types.is_string(values.type):
            raise ValueError("only strings can shout")
        return pa.array(
            ["!" * count if valid else None for valid in values.is_valid().to_pylist()], pa.string()
        )

    return mask


class Shouting:
    @hookimpl
    def lockgate_masks(self) -> dict[str, Any]:
        return {"shout": shout, "broken": lambda parameters: lambda values: values.slice(1)}


@pytest.fixture
def shouting() -> Iterator[None]:
    register(Shouting(), "shouting")
    yield
    plugins().unregister("shouting")


@pytest.mark.usefixtures("shouting")
def test_plugins_add_masks() -> None:
    texts = pa.array([["a", None], None, []], pa.list_(pa.string()))
    assert masked_column(texts, "k:c._elem", "shout,3:c._elem").to_pylist() == [["!!!", None], None, []]
    schema = pa.schema([("c", pa.int64()), ("s", pa.string())])
    with pytest.raises(
        OptionError, match="'shout' cannot mask column 'c' of type int64: only strings can shout"
    ):
        parse_encryption("k:c", "shout:c", schema)
    with pytest.raises(OptionError, match="column 's': mask 'shout,x': invalid literal"):
        parse_encryption("k:s", "shout,x:s", schema)
    with pytest.raises(OptionError, match="no mask 'shoot'; did you mean 'shout'"):
        parse_encryption("k:s", "shoot:s", schema)
    with pytest.raises(PluginError, match="'broken' returned 0 of string for 1 values"):
        parse_encryption("k:s", "broken:s", schema)


def test_apaches_masks_cannot_be_replaced() -> None:
    class Greedy:
        @hookimpl
        def lockgate_masks(self) -> dict[str, Any]:
            return {"sha256": shout}

    register(Greedy(), "greedy")
    try:
        with pytest.raises(PluginError, match="'sha256' is a mask of Apache ORC; give"):
            plugins().masks()
    finally:
        plugins().unregister("greedy")


class TestShout(MaskConformance):
    factory = staticmethod(shout)
    parameters = ("2",)
    samples = (pa.array(["a", None, "bc", ""]),)


class TestRedact(MaskConformance):
    factory = STANDARD["redact"]
    samples = (
        pa.array(["Mary", None, "é1", ""]),
        pa.array([1, None, -5]),
        pa.array([1.5, None]),
        pa.array([Decimal("1.50"), None], pa.decimal128(20, 2)),
        pa.array([datetime.date(2020, 5, 5), None]),
    )


class TestSha256(MaskConformance):
    factory = staticmethod(STANDARD["sha256"])
    samples = (pa.array(["Mary", None, ""]), pa.array([b"Mary", None, b""]))

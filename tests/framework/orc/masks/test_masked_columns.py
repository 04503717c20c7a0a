"""Masks of columns that are encrypted completely or in part: nested columns, options, refusals."""

from __future__ import annotations

import hashlib
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import OptionError
from lockgate.framework.orc import Mask, parse_encryption
from lockgate.framework.orc.format.column_paths import ColumnTree
from lockgate.framework.orc.masks.masks import ColumnMasks


def masked_column(values: pa.Array, encrypt: str, mask: str | None) -> pa.ChunkedArray:
    schema = pa.schema([pa.field("c", values.type)])
    masks = ColumnMasks(parse_encryption(encrypt, mask, schema), tree := ColumnTree(schema))
    masked = masks.mask_column(tree.top[0], pa.chunked_array([values]))
    assert (masked.type, len(masked)) == (values.type, len(values))
    masked.validate(full=True)
    return masked


PEOPLE = pa.array(
    [
        {"name": f"N{row}", "tags": [f"t{each}" for each in range(row % 4)], "codes": [(f"k{row}", row)]}
        if row % 5
        else None
        for row in range(40)
    ],
    pa.struct(
        [
            ("name", pa.string()),
            ("tags", pa.list_(pa.string())),
            ("codes", pa.map_(pa.string(), pa.int64())),
        ]
    ),
)


@pytest.mark.parametrize("slice_", [(0, 40), (7, 20), (39, 1), (11, 0)])
def test_nested_columns_keep_their_shape(slice_: tuple[int, int]) -> None:
    people = PEOPLE.slice(*slice_)
    masked = masked_column(people, "k:c", "redact:c").to_pylist()
    assert masked == [
        row
        and {
            "name": "X" + "9" * len(row["name"][1:]),
            "tags": ["x9"] * len(row["tags"]),
            "codes": masked_code(row),
        }
        for row in people.to_pylist()
    ]


def masked_code(row: dict[str, Any]) -> list[tuple[str, int]]:
    return [("x" + "9" * len(key[1:]), int("9" * len(str(value)))) for key, value in row["codes"]]


@pytest.mark.parametrize("slice_", [(0, 40), (7, 20)])
def test_only_named_parts_are_masked(slice_: tuple[int, int]) -> None:
    people = PEOPLE.slice(*slice_)
    masked = masked_column(people, "k:c.tags._elem,c.codes._value", "sha256:c.tags._elem").to_pylist()
    for row, found in zip(people.to_pylist(), masked, strict=True):
        if row is None:
            assert found is None
            continue
        assert found["name"] == row["name"]
        assert found["codes"] == [(key, None) for key, _ in row["codes"]]
        assert found["tags"] == [hashlib.sha256(tag.encode()).hexdigest().upper() for tag in row["tags"]]


def test_parts_of_a_column_have_their_own_masks() -> None:
    masked = masked_column(PEOPLE, "k:c", "redact:c;nullify:c.tags;redact,Xx1:c.name").to_pylist()
    assert masked[7] == {"name": "X1", "tags": None, "codes": [("x9", 9)]}
    assert masked_column(PEOPLE, "k:c", None).null_count == 40
    # What has no digest is null, as in Java.
    assert masked_column(PEOPLE, "k:c", "sha256:c").to_pylist()[7]["codes"][0][1] is None


@pytest.mark.parametrize(
    ("encrypt", "mask", "message"),
    [
        ("k:c.codes._key", None, "'nullify' makes 'c.codes._key' null, but keys of a map are never null"),
        ("k:c", "redact:c;nullify:c.codes._key", "keys of a map are never null"),
        ("k:c", "redact:c.name", "the mask of 'c.name' has no effect, because .nullify. removes all of 'c'"),
        ("k:c.codes._value", "sha256:c.codes._value", "sha256 masks strings and binaries"),
        ("k:c.name", "hash:c.name", "column 'c.name': there is no mask 'hash'"),
        ("k:c.name", "redact,`X!9`,`x y`:c.name", "the year of times is"),
        ("k:c,c.name", None, "'c.name' is a part of 'c', which is encrypted as a whole"),
        ("k:c.nam", None, "there is no column 'c.nam'; did you mean 'c.name'"),
        ("k:0", None, "instead of numbering them as '0'.*the row itself"),
        ("k:2", None, "instead of numbering"),
        ("k:c.name", "redact,X-9:c.name", "'X-9' cannot come before a colon; .* between backticks"),
        ("k:c.name", "redact,`X9:c.name", "a backtick is not closed"),
        ("k,l:c", None, "'k,l' is not the name of one key"),
    ],
)
def test_masks_are_checked_before_anything_is_written(encrypt: str, mask: str | None, message: str) -> None:
    with pytest.raises(Exception, match=message) as caught:
        parse_encryption(encrypt, mask, pa.schema([pa.field("c", PEOPLE.type)]))
    assert type(caught.value).__module__ == "lockgate.errors"


def test_masks_that_make_map_keys_null_are_refused() -> None:
    for type_, mask in ((pa.int64(), "sha256"), (pa.binary(), "redact")):
        schema = pa.schema([("m", pa.map_(type_, pa.string()))])
        with pytest.raises(OptionError, match="keys of a map are never null"):
            parse_encryption("k:m", f"{mask}:m", schema)
        assert parse_encryption("k:m", None, schema).columns == ["m"]


def test_options_have_apaches_form() -> None:
    schema = pa.schema(
        [("my col", pa.string()), ("a.b", pa.string()), ("s", pa.struct([("x y", pa.string())]))]
    )
    text = "redact,Xx9,`2000 _ _`,`0:3,-4:-1`:`my col`;redact,`X;:,``9`:s.`x y`"
    encryption = parse_encryption("k:`my col`,a.b,s.`x y`", text, schema)
    assert encryption.columns == ["my col", "a.b", "s.`x y`"]
    assert encryption.masks == {
        "my col": Mask("redact", ("Xx9", "2000 _ _", "0:3,-4:-1")),
        "s.`x y`": Mask("redact", ("X;:,`9",)),
    }
    assert [str(mask) for mask in encryption.masks.values()] == [
        "redact,Xx9,`2000 _ _`,`0:3,-4:-1`",
        "redact,`X;:,``9`",
    ]
    for mask in encryption.masks.values():
        again = parse_encryption("k:a.b", f"{mask}:a.b", schema)
        assert again.mask_of("a.b") == mask

"""Layers of mapped files: exact keys also where hashes are equal, the newest value, merges in ranges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockgate.lookup.cache import layers
from lockgate.lookup.cache.layers import Layer, LayerWriter, hashes_of, merged
from lockgate.lookup.codec import key_codec
from lockgate.lookup.codec.byte_rows import Rows
from lockgate.lookup.codec.key_codec import KeyCodec

ONE = pa.schema([("k", pa.int64())])
TEXT = pa.schema([("a", pa.string()), ("b", pa.int32())])
IN_FOLDERS = settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])


def encode(schema: pa.Schema, keys: list[Any]) -> Rows:
    """The keys' rows, sorted and distinct."""
    columns = [pa.array([key[n] for key in keys], field.type) for n, field in enumerate(schema)]
    encoded = KeyCodec(schema).encode(columns)
    return encoded.rows.take(encoded.distinct().first)


def layer_of(folder: Path, name: str, keys: Rows, values: list[bytes], step: int = 3) -> Layer:
    writer = LayerWriter(folder, name)
    for start in range(0, len(keys), step):
        at = np.arange(start, min(start + step, len(keys)))
        writer.put(keys.take(at), Rows.from_values([values[n] for n in at]))
    assert writer.finish() == folder / name
    return Layer(folder, name)


def held(layer: Layer, keys: Rows) -> list[bytes | None]:
    at = layer.find(keys, hashes_of(keys))
    found: list[bytes | None] = [None] * len(keys)
    there = np.flatnonzero(at >= 0)
    for place, value in zip(there, layer.values(at[there]).gather().to_bytes(), strict=True):
        found[place] = value
    return found


NUMBERS = st.tuples(st.integers(-30, 30))
TEXTS = st.tuples(st.text("ab", max_size=10), st.integers(0, 1))


@pytest.mark.parametrize("one_hash", [False, True])
@pytest.mark.parametrize(("schema", "keys"), [(ONE, NUMBERS), (TEXT, TEXTS)])
@IN_FOLDERS
@given(data=st.data())
def test_keys_are_found_exactly(
    tmp_path: Path, schema: pa.Schema, keys: st.SearchStrategy[Any], one_hash: bool, data: st.DataObject
) -> None:
    known = data.draw(st.lists(keys, max_size=25))
    asked = data.draw(st.lists(keys, min_size=1, max_size=25))
    with pytest.MonkeyPatch.context() as patch:
        if one_hash:
            patch.setattr(key_codec, "hash_rows", lambda rows: np.full(len(rows), 7, np.uint64))
        rows, probes = encode(schema, known), encode(schema, asked)
        values = [bytes([n]) * 8 for n in range(len(rows))]
        expected = dict(zip(rows.to_bytes(), values, strict=True))
        layer = layer_of(tmp_path, "1", rows, values)
        assert len(layer) == len(expected)
        assert held(layer, probes) == [expected.get(key) for key in probes.to_bytes()]


@pytest.mark.parametrize("one_hash", [False, True])
@pytest.mark.parametrize("bottom", [False, True])
@IN_FOLDERS
@given(steps=st.lists(st.dictionaries(TEXTS, st.booleans(), max_size=15), min_size=1, max_size=4))
def test_a_merge_holds_what_the_layers_say_together(
    tmp_path: Path, steps: list[dict[Any, bool]], bottom: bool, one_hash: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layers, "MERGE_ROWS", 4)
        if one_hash:
            patch.setattr(key_codec, "hash_rows", lambda rows: np.full(len(rows), 7, np.uint64))
        expected: dict[bytes, bytes] = {}
        parts = []
        for number, step in enumerate(steps):
            keys = encode(TEXT, list(step))
            alive = {encode(TEXT, [key]).to_bytes()[0]: here for key, here in step.items()}
            values = [bytes([number + 1]) * 16 if alive[key] else b"" for key in keys.to_bytes()]
            parts.append(layer_of(tmp_path, str(number), keys, values))
            expected.update(zip(keys.to_bytes(), values, strict=True))
        if bottom:
            expected = {key: value for key, value in expected.items() if value}
        writer = LayerWriter(tmp_path, "merged")
        for keys, rows in merged(parts, bottom=bottom):
            writer.put(keys, rows)
        writer.finish()
        layer = Layer(tmp_path, "merged")
        assert len(layer) == len(expected)
        keys, rows = layer.piece(0, len(layer))
        assert dict(zip(keys.to_bytes(), rows.to_bytes(), strict=True)) == expected
        assert layer.hashes.tolist() == sorted(layer.hashes.tolist())


def test_a_layer_stays_readable_when_its_files_are_removed(tmp_path: Path) -> None:
    keys = encode(ONE, [(n,) for n in range(100)])
    layer = layer_of(tmp_path, "1", keys, [bytes([n]) * 8 for n in range(100)], step=40)
    assert not (tmp_path / "1.key-ends").exists(), "keys of one length need no ends"
    for path in tmp_path.iterdir():
        path.unlink()
    assert held(layer, keys) == [bytes([n]) * 8 for n in range(100)]
    assert layer.nbytes == 100 * 8 * 4 + 8

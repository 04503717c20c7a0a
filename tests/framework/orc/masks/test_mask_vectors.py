"""Masked values: the vectors of `tests/fixtures/masks.json`, which the connector runs too."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.framework.orc.encryption.encryption_options import Mask
from lockgate.framework.orc.masks.masks import STANDARD, mask_function
from lockgate.framework.types import parse_type, to_arrow, value_from_json, value_to_json

CASES = json.loads((Path(__file__).parents[3] / "fixtures" / "masks.json").read_text())


@pytest.mark.parametrize("name", STANDARD)
def test_masked_values(name: str) -> None:
    cases = [case for case in CASES if case["mask"] == name]
    assert cases
    for case in cases:
        kind = parse_type(case["type"])
        values = pa.array([value_from_json(kind, value) for value in case["values"]], to_arrow(kind))
        masked = mask_function(Mask(name, tuple(case["parameters"])))(values)
        found = [value_to_json(kind, value) for value in masked.to_pylist()]
        assert json.dumps(found) == json.dumps(case["masked"]), (case["type"], case["parameters"])


def by_value(name: str, kind: str, parameters: tuple[str, ...] = ()) -> dict[Any, Any]:
    (case,) = (
        case
        for case in CASES
        if (case["mask"], case["type"], tuple(case["parameters"])) == (name, kind, parameters)
    )
    return dict(zip(case["values"], case["masked"], strict=True))


def test_some_masks_by_hand() -> None:
    assert set(by_value("nullify", "INT").values()) == {None}
    assert by_value("sha256", "STRING")["12-34"] == hashlib.sha256(b"12-34").hexdigest().upper()
    assert by_value("redact", "STRING")["Ab1 $."] == "Xx9 $."
    assert by_value("redact", "INT", ("Xx7",))[1234567] == 7777777
    assert by_value("redact", "DECIMAL(10, 2)")["12345678.90"] == "99999999.90"
    assert by_value("redact", "DATE")[19782] == 19723  # 2024-02-29 as 2024-01-01

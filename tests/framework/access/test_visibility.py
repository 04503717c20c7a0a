"""Visibility of a column: the strictest of keys, masks and refusals counts."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from house import ROOT, sources

from lockgate.framework.access import MASKED, Decision, Mask, Sight, Visibility
from lockgate.pushdown import AlwaysTrue, Comparison, Op, all_of, any_of

REDACT = Mask("redact", ("9",))
ENCRYPTED = {"ssn": ("pii",), "address": ("pii", "place"), "pay": ("finance",)}


@pytest.mark.parametrize(
    ("denied", "masked", "held"), list(itertools.product([True, False], [True, False], [True, False]))
)
def test_the_strictest_reason_counts(denied: bool, masked: bool, held: bool) -> None:
    seen = Visibility(
        ENCRYPTED,
        frozenset({"pii"} if held else ()),
        {"ssn": REDACT} if masked else {},
        frozenset({"ssn"} if denied else ()),
    ).column("ssn")
    expected = (
        Sight.DENIED
        if denied
        else Sight.MASKED_BY_POLICY
        if masked
        else Sight.CLEAR
        if held
        else Sight.MASKED_BY_KEY
    )
    assert seen.sight is expected
    attribute = {Sight.MASKED_BY_POLICY: "redact,9", Sight.MASKED_BY_KEY: "pii"}
    assert seen.masked == attribute.get(expected)
    assert seen.missing == (() if held else ("pii",)), "a mask of a policy hides no missing key"


def test_each_key_of_a_column_is_needed() -> None:
    seen = Visibility(ENCRYPTED, frozenset({"pii"}))
    assert seen.column("address").sight is Sight.MASKED_BY_KEY
    assert seen.missing_keys() == {"address": "place", "pay": "finance"}
    assert seen.missing_keys(["pay", "ssn", "id"]) == {"pay": "finance"}
    assert seen.missing_keys([]) == {}
    assert seen.decrypted == ("ssn", "address")
    assert seen.column("id").sight is Sight.CLEAR


def test_without_keys_every_encrypted_column_is_masked() -> None:
    assert {Visibility(ENCRYPTED).column(name).sight for name in ENCRYPTED} == {Sight.MASKED_BY_KEY}


def test_a_visibility_copies_its_arguments() -> None:
    masks = {"ssn": REDACT}
    seen = Visibility(masks=masks)
    masks.clear()
    assert seen.column("ssn").mask == REDACT


def test_conditions_on_masked_columns_test_masks_only() -> None:
    ssn, city, new = (Comparison(Op.EQ, (name,), (pa.scalar(1),)) for name in ("ssn", "city", "year"))
    decision = Decision(row_filter=new, masks={"ssn": REDACT})
    either = any_of(ssn, city)
    assert decision.on_stored(all_of(ssn, city, either)) == all_of(new, city)
    assert decision.on_masked(all_of(ssn, city, either)) == all_of(ssn, either)
    assert decision.on_masked(city) == AlwaysTrue()
    assert decision.masked(["city", "ssn"]) == ("ssn",)


def test_the_masked_attribute_has_one_definition() -> None:
    spelled = [path for path in sources() if f'"{MASKED}"' in path.read_text()]
    assert spelled == [ROOT / "framework" / "access" / "visibility.py"]

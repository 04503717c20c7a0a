"""Combined decisions: one more decision never shows more."""

from __future__ import annotations

import dataclasses
import itertools

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.errors import InputError
from lockgate.framework.access import ALLOWED, Caller, Decision, Mask, Principal, combined, stricter
from lockgate.pushdown import AlwaysTrue, Comparison, Op, all_of

SWISS = Comparison(Op.EQ, ("country",), (pa.scalar("CH"),))
NEW = Comparison(Op.GE, ("year",), (pa.scalar(2024),))
MASKS = [Mask("nullify"), Mask("sha256"), Mask("redact"), Mask("redact", ("9",)), Mask("initials")]


def test_an_empty_combination_allows() -> None:
    assert combined([]) == ALLOWED
    assert ALLOWED.allowed
    assert not ALLOWED.is_restricted


def test_one_refusal_is_enough_and_all_missing_grants_are_named() -> None:
    refused = combined([ALLOWED, Decision.denied("role a", "role b"), Decision.denied("role a", "role c")])
    assert refused == Decision.denied("role a", "role b", "role c")


def test_all_row_filters_apply() -> None:
    assert combined([Decision(row_filter=SWISS), ALLOWED, Decision(row_filter=NEW)]).row_filter == all_of(
        SWISS, NEW
    )
    assert combined([ALLOWED, ALLOWED]).row_filter == AlwaysTrue()


@pytest.mark.parametrize(("one", "other"), list(itertools.product(MASKS, MASKS)))
def test_the_stricter_mask_wins_in_any_order(one: Mask, other: Mask) -> None:
    won = stricter(one, other)
    assert won == stricter(other, one)
    if one == other:
        assert won == one
    elif "nullify" in (one.name, other.name):
        assert won == Mask("nullify")
    elif "sha256" in (one.name, other.name):
        assert won == Mask("sha256")
    else:
        assert won == Mask("sha256"), "two parts of a value may make up all of it"


@given(st.lists(st.sampled_from(MASKS), min_size=1, max_size=5))
def test_the_order_of_masks_does_not_matter(masks: list[Mask]) -> None:
    decisions = [Decision(masks={"name": mask}) for mask in masks]
    assert combined(decisions) == combined(reversed(decisions))
    assert combined([combined(decisions[:2]), *decisions[2:]]) == combined(decisions)


def test_decisions_that_contradict_themselves_are_refused() -> None:
    with pytest.raises(InputError, match="name grants to apply for"):
        Decision(allowed=False)
    with pytest.raises(InputError, match="nothing to apply for"):
        Decision(apply_for=("role a",))
    with pytest.raises(InputError, match="no row filter"):
        Decision(allowed=False, apply_for=("role a",), row_filter=SWISS)


def test_repr_shows_no_filter() -> None:
    assert "CH" not in repr(Decision(row_filter=SWISS))


def test_types_are_frozen() -> None:
    principal = Principal("ada", frozenset({"staff"}), attributes={"country": "CH"})
    with pytest.raises(dataclasses.FrozenInstanceError):
        principal.user = "root"  # type: ignore[misc]  # that is what is tested
    with pytest.raises(TypeError):
        principal.attributes["country"] = "DE"  # type: ignore[index]  # that is what is tested
    given_masks = {"name": Mask("redact")}
    decision = Decision(masks=given_masks)
    given_masks.clear()
    assert decision.masks == {"name": Mask("redact")}
    assert hash(principal) == hash(Principal("ada", frozenset({"staff"})))
    assert Caller("ada") == Caller("ada", "python", None)


def test_a_principal_needs_a_user() -> None:
    with pytest.raises(InputError, match="needs a user"):
        Principal("")

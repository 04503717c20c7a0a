"""File indexes that Paimon's Java core wrote: Lockgate reads the same rows and writes the same bytes."""

from __future__ import annotations

from typing import Any

import pytest
from golden_indexes import Column, check_answers, columns, golden

GOLDEN = golden()


def test_golden_files_have_every_kind_and_type() -> None:
    assert [column for column, _, _ in GOLDEN] == list(columns())


@pytest.mark.parametrize("kind", ["bloom-filter", "bitmap", "range-bitmap"])
def test_rows_equal_paimons(kind: str) -> None:
    for column, container, told in chosen(kind):
        check_answers(column, column.answers(container), told)
        check_answers(column, column.answers(column.container()), told)


@pytest.mark.parametrize("kind", ["bloom-filter", "bitmap", "range-bitmap"])
def test_bytes_equal_paimons(kind: str) -> None:
    """Paimon writes a bitmap's body in the order of a hash map."""
    for column, container, _ in chosen(kind):
        own = column.container()
        assert len(own) == len(container), column
        assert own == container or kind == "bitmap", column


def chosen(kind: str) -> list[tuple[Column, bytes, list[Any]]]:
    return [each for each in GOLDEN if each[0].kind == kind]

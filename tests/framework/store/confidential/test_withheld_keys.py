"""The keys that a scan under policies does without."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest

from lockgate.framework.access import Mask, SqlDecision, columns_named
from lockgate.framework.access.masked_sql import mask_sql
from lockgate.framework.store import Schema
from lockgate.framework.store.confidential.withheld_keys import (
    key_uses,
    needed_columns,
    withheld_keys,
)
from lockgate.framework.store.schema.schema import TableSchema

NAMES = ("id", "ssn", "mail", "pay", "my col")
TYPES = {name: "BIGINT" if name in ("id", "pay") else "STRING" for name in NAMES}
ENCRYPT = {"orc.encrypt": "pii:ssn,mail;money:pay;odd:my col", "orc.mask": "redact:ssn;sha256:mail"}


def schema(options: Mapping[str, str], names: tuple[str, ...] = NAMES, number: int = 0) -> TableSchema:
    columns = pa.schema([(name, pa.int64() if name in ("id", "pay") else pa.string()) for name in names])
    made = Schema.from_arrow(columns, options=options)
    fields = made.fields
    return TableSchema(number, tuple(fields), len(fields), options=options)


def masked(name: str, column: str) -> str:
    return mask_sql(Mask(name), column, TYPES[column]) or ""


def left_out(decision: SqlDecision, *files: TableSchema, merged: bool = False) -> frozenset[str]:
    read = schema(ENCRYPT)
    uses = key_uses(read, files)
    return withheld_keys(uses, needed_columns(decision, TYPES, uses, read if merged else None))


def denied(
    *columns: str, masks: Mapping[str, str] | None = None, row_filter: str | None = None
) -> SqlDecision:
    return SqlDecision(denied=dict.fromkeys(columns, ("a grant",)), masks=masks or {}, row_filter=row_filter)


def test_a_denied_column_needs_no_key_unless_another_has_the_same() -> None:
    assert left_out(SqlDecision()) == frozenset()
    assert left_out(denied("pay")) == {"money"}
    assert left_out(denied("ssn")) == frozenset(), "mail has the same key"
    assert left_out(denied("ssn", "mail")) == {"pii"}


def test_a_row_filter_or_another_mask_needs_the_values_of_denied_columns() -> None:
    assert left_out(denied("pay", row_filter="PAY > 5")) == frozenset()
    assert left_out(denied("pay", masks={"ssn": "CAST(pay AS STRING)"})) == frozenset()
    assert left_out(denied("my col", row_filter="`my col` <> 'x'")) == frozenset()


@pytest.mark.parametrize(
    ("masks", "withheld"),
    [
        ({"pay": masked("nullify", "pay")}, {"money"}),
        ({"pay": masked("redact", "pay")}, set()),  # the files store another mask
        ({"ssn": masked("redact", "ssn")}, set()),  # mail is read
        ({"ssn": masked("redact", "ssn"), "mail": masked("nullify", "mail")}, set()),
        # A hash of a stored hash is another value.
        ({"ssn": masked("redact", "ssn"), "mail": masked("sha256", "mail")}, set()),
    ],
)
def test_a_mask_that_the_files_store_needs_no_key(masks: dict[str, str], withheld: set[str]) -> None:
    assert left_out(SqlDecision(masks=masks)) == withheld


def test_a_redacted_number_may_be_too_large_for_its_type() -> None:
    read = schema({"orc.encrypt": "money:pay", "orc.mask": "redact:pay"})
    decision = SqlDecision(masks={"pay": masked("redact", "pay")})
    assert "pay" in needed_columns(decision, TYPES, key_uses(read, ()))


def test_masked_and_denied_columns_of_one_key_leave_it_out_together() -> None:
    assert left_out(denied("mail", masks={"ssn": masked("redact", "ssn")})) == {"pii"}
    text = masked("redact", "ssn")
    assert left_out(denied("mail", masks={"ssn": text}, row_filter="ssn <> ''")) == frozenset()


def test_every_schema_of_a_file_counts() -> None:
    decision = SqlDecision(masks={"pay": masked("nullify", "pay")})
    older = schema({"orc.encrypt": "money:pay", "orc.mask": "redact:pay"}, number=1)
    assert left_out(decision, older) == frozenset(), "files of another mask would show that one"
    plain = schema({}, number=2)
    assert left_out(decision, plain) == {"money"}, "the mask of the policy is put on the values there"
    old = schema({"orc.encrypt": "old:pay"}, number=3)
    assert left_out(denied("pay"), old) == {"money", "old"}
    named = schema({"orc.encrypt": "money:id"}, ("id", "ssn", "mail", "salary", "my col"), 4)
    assert left_out(denied("pay"), named) == frozenset(), "id is read there"


def test_merging_needs_values_and_the_columns_that_order_rows() -> None:
    decision = SqlDecision(masks={"pay": masked("nullify", "pay")})
    assert left_out(decision, merged=True) == frozenset()
    assert left_out(denied("pay"), merged=True) == {"money"}
    read = schema({**ENCRYPT, "sequence.field": "pay"})
    uses = key_uses(read, ())
    needed = needed_columns(denied("pay"), TYPES, uses, read)
    assert "pay" in needed
    assert withheld_keys(uses, needed) == frozenset()


def test_names_in_expressions() -> None:
    assert columns_named(["A.ID > 1 AND `my col` = 2"], ["id", "my col", "i"]) == {"id", "my col"}
    assert columns_named(["`a``b` = 1"], ["a`b", "b c"]) == {"a`b"}

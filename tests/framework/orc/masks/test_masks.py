"""Masks: Apache ORC's own published examples, every type, nested positions, parameters, and plugins."""

from __future__ import annotations

import datetime
import hashlib
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from lockgate.errors import OptionError
from lockgate.framework.orc import Mask, parse_encryption
from lockgate.framework.orc.format.column_paths import ColumnTree
from lockgate.framework.orc.masks.masks import ColumnMasks, mask_function
from lockgate.framework.orc.masks.numbers import java_double


def redacted(values: Sequence[Any], type_: pa.DataType, *parameters: str) -> list[Any]:
    mask = Mask("redact", parameters)
    masked = mask_function(mask)(pa.array(values, type_))
    assert masked.type == type_
    masked.validate(full=True)
    found: list[Any] = masked.to_pylist()
    return found


# --- redact: what Apache's own tests publish (TestRedactMask, TestUnmaskRange) ---


def test_integers_keep_sign_and_number_of_digits() -> None:
    largest, least = 2**63 - 1, -(2**63)
    values = [0, 9, -9, -1, 10, -10, largest, least + 1, least, None]
    sevens = 7_777_777_777_777_777_777
    assert redacted(values, pa.int64(), "Xx7") == [7, 7, -7, -7, 77, -77, sevens, -sevens, -sevens, None]


@pytest.mark.parametrize("digit", range(10))
def test_integers_of_every_length(digit: int) -> None:
    for power in range(19):
        expected = int(str(digit) * (power + 1))
        if digit == 9 and power == 18:
            # 19 nines are more than the type holds.
            expected = 999_999_999_999_999_999
        values = [10**power, 5 * 10**power, 9 * 10**power]
        assert redacted(values, pa.int64(), f"Xx{digit}") == [expected] * 3


def test_small_integers_keep_the_low_bits_as_in_java() -> None:
    assert redacted([100, -5, 7, None], pa.int8()) == [999 - 1024, -9, 9, None]
    assert redacted([12345, -12], pa.int16()) == [99999 - 2 * 65536, -99]
    assert redacted([2**31 - 1, -12], pa.int32()) == [9_999_999_999 - 2 * 2**32, -99]


def test_doubles_keep_sign_and_power_of_ten() -> None:
    values = [0.0, 9.9, -9.9, -1.0, 10.0, -10.0, float(2**63), -float(2**63), 2.2250738585072014e-308]
    expected = [
        7.77777,
        7.77777,
        -7.77777,
        -7.77777,
        77.7777,
        -77.7777,
        7.77777e18,
        -7.77777e18,
        7.77777e-308,
    ]
    assert redacted(values, pa.float64(), "Xx7") == pytest.approx(expected, rel=1e-15)
    assert redacted([1.7976931348623157e308, None], pa.float64(), "Xx7") == [pytest.approx(7.77777e307), None]
    assert redacted([5e-324, -math.inf, math.nan], pa.float64()) == pytest.approx(
        [9.99999e-308, -9.99999e307, -9.99999e307]
    )
    assert redacted([123.0, -0.5, 3e38], pa.float32()) == [
        pytest.approx(999.999),
        pytest.approx(-0.999999),
        math.inf,
    ]
    assert redacted([5.0, 0.0], pa.float64(), "Xx0") == [0.0, 0.0]


def test_redacted_decimals_keep_their_scale() -> None:
    assert redacted([Decimal("123.456")], pa.decimal128(10, 3), "Xx7") == [Decimal("777.777")]
    assert redacted([Decimal("0123456789123456789.01230")], pa.decimal128(38, 5), "Xx7") == [
        Decimal("777777777777777777.77770")
    ]
    values = [
        Decimal("1.50"),
        Decimal("-0.05"),
        Decimal("0.00"),
        None,
        Decimal("100.00"),
        Decimal("-99999.99"),
    ]
    expected = [Decimal(each) for each in ("9.9", "-9.99", "9", "999", "-99999.99")]
    expected.insert(3, None)  # type: ignore[arg-type]  # a null among decimals
    assert redacted(values, pa.decimal128(7, 2)) == expected
    # Where there is no room before the point, the zero stays.
    assert redacted([Decimal("0.5"), Decimal("0.05")], pa.decimal128(2, 2)) == [
        Decimal("0.90"),
        Decimal("0.99"),
    ]
    assert redacted([Decimal(12), Decimal(-1)], pa.decimal128(38, 0), "Xx3") == [33, -3]


def test_booleans_dates_times_and_binaries() -> None:
    assert redacted([True, False, None], pa.bool_()) == [True, True, None]
    assert redacted([True, False, None], pa.bool_(), "Xx0") == [False, False, None]
    assert redacted([True, False, None], pa.bool_(), "Xx_") == [True, False, None]
    assert redacted([b"x", b"", None], pa.binary()) == [None, None, None]

    date = datetime.date
    assert redacted([date(1965, 3, 12), None], pa.date32()) == [date(1965, 1, 1), None]
    for times, day, expected in (
        ("2000 _ _", date(1965, 3, 12), date(2000, 3, 12)),
        ("_ 7 _", date(1965, 3, 12), date(1965, 7, 12)),
        ("_ _ 7", date(1965, 3, 12), date(1965, 3, 7)),
        ("_ _ 7", date(2017, 9, 20), date(2017, 9, 7)),
        ("_ 2 _", date(2017, 1, 31), date(2017, 3, 3)),
        ("_ _ _", date(2017, 9, 20), date(2017, 9, 20)),
    ):
        assert redacted([day], pa.date32(), "Xx9", times) == [expected]

    moment = datetime.datetime(2017, 5, 18, 1, 23, 45)
    for times, expected in (
        ("", datetime.datetime(2017, 1, 1)),
        ("2000 _ _ 15 0 _", datetime.datetime(2000, 5, 18, 15, 0, 45)),
        ("2007 _ _ _ _ _", moment.replace(year=2007)),
        ("_ 7 _ _ _ _", moment.replace(month=7)),
        ("_ _ 7 _ _ _", moment.replace(day=7)),
        ("_ _ _ 7 _ _", moment.replace(hour=7)),
        ("_ _ _ _ 7 _", moment.replace(minute=7)),
        ("_ _ _ _ _ 7", moment.replace(second=7)),
    ):
        for type_ in (pa.timestamp("us"), pa.timestamp("ms"), pa.timestamp("s")):
            assert redacted([moment, None], type_, "Xx9", times) == [expected, None]
    early = datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)
    assert redacted([early], pa.timestamp("us"), "Xx9", "_ _ _ _ _ 7") == [
        datetime.datetime(1969, 12, 31, 23, 59, 7)
    ]
    assert redacted([early], pa.timestamp("us"), "Xx9", "_ _ _ _ _ _") == [early]
    with pytest.raises(OptionError, match="cannot have the year 4000; cast it to microseconds"):
        redacted([1], pa.timestamp("ns"), "Xx9", "4000")


LITTLE_LAMB = "Mary had 1 little lamb!!"


def test_texts_keep_the_classes_of_their_characters() -> None:
    for type_ in (pa.string(), pa.large_string()):
        assert redacted([LITTLE_LAMB, None, "", "\U0002070e"], type_) == [
            "Xxxx xxx 9 xxxxxx xxxx..",
            None,
            "",
            "ª",
        ]
    letters = "Xx0$. הी\u2182\u06dd«\n"
    assert redacted([letters], pa.string(), "1234567890") == ["123456789000"]
    assert redacted(["text overflow."], pa.string(), "\U000267cc\U00028cca") == [
        f"{chr(0x28CCA) * 4} {chr(0x28CCA) * 8}."
    ]
    # A class that is kept.
    assert redacted(["Ab1 é"], pa.string(), "X_9") == ["Xb9 é"]


def test_ranges_to_keep() -> None:
    lamb = [LITTLE_LAMB, "\U0002070e"]
    assert redacted(lamb, pa.string(), "", "", "0:3, -5:-1") == ["Mary xxx 9 xxxxxx xamb!!", lamb[1]]
    assert redacted(lamb, pa.string(), "", "", "-1:-5") == ["Xxxx xxx 9 xxxxxx xxxx..", "ª"]
    assert redacted(["äbcde", "é"], pa.string(), "", "", "-2:-1") == ["xxxde", "é"]

    def integers(values: list[int], digit: str, ranges: str) -> list[int]:
        return redacted(values, pa.int64(), digit, "", ranges)

    assert integers([123456, -123456], "Xx9", "0:2") == [123_999, -129_999]
    assert integers([123456, -123456], "Xx9", "-3:-1") == [999_456, -999_456]
    assert integers([123456, 1_234_567_890_123_456_789], "Xx9", "7:10") == [999_999, 999_999_999_999_999_999]
    assert integers([4716885592186382], "Xx7", "0:3,-4:-1") == [4716_77777777_6382]
    assert redacted([1234.99, 12345.9], pa.float64(), "Xx7", "", "0:2") == [1237.77, 12377.7]
    assert redacted([1234.9, None], pa.float64(), "Xx7", "", "-3:-1") == [7774.9, None]
    wide = pa.decimal128(30, 6)
    assert redacted([Decimal("123456.789")], wide, "Xx7", "", "0:3") == [Decimal("123477.777")]
    assert redacted([Decimal("123456789.987654")], wide, "Xx7", "", "-3:-1, 0:3") == [
        Decimal("123477777.777654")
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1234.9, "1234.9"),
        (100.0, "100.0"),
        (1e7, "1.0E7"),
        (-1.25e10, "-1.25E10"),
        (0.001, "0.001"),
        (1.5e-5, "1.5E-5"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
    ],
)
def test_doubles_in_javas_notation(value: float, text: str) -> None:
    assert java_double(value) == text


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (("Xx9$._ªः²۝!",), "has a character for each of 10 classes"),
        (("", "1 2 3 4 5 6 7"), "up to 6 numbers"),
        (("", "4001"), "the year of times is 0 to 4000 or _, not '4001'"),
        (("", "_ 13"), "the month of times"),
        (("", "-1"), "up to 6 numbers"),
        (("", "", "1-2"), "ranges of positions as in '0:3,-4:-1', not '1-2'"),
        (("", "", "", ""), "takes at most 3 parameters, not 4"),
    ],
)
def test_wrong_parameters(parameters: tuple[str, ...], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        mask_function(Mask("redact", parameters))


def test_digits_may_be_any_character() -> None:
    """Numbers get the value of the character, or 9 if it has none."""
    assert redacted([12], pa.int64(), "Xx७") == [77]
    assert redacted([12], pa.int64(), "Xx#") == [99]
    assert redacted([12, 5], pa.int64(), "Xx_") == [12, 5]
    # As text, a number with such a character is none; Java then has 18 digits of one kind.
    assert redacted([12], pa.int64(), "Xx#", "", "5:6") == [999_999_999_999_999_999]
    assert redacted([1.5], pa.float64(), "Xx७", "", "5:6") == [float(777_777_777_777_777_777)]


# --- sha256 and nullify ---


def test_sha256_of_texts_and_binaries() -> None:
    texts = ["é", None, "", "a" * 1000, "é"]
    expected = [text and hashlib.sha256(text.encode()).hexdigest().upper() for text in texts]
    expected[2] = hashlib.sha256(b"").hexdigest().upper()
    for type_ in (pa.string(), pa.large_string()):
        assert mask_function(Mask("sha256"))(pa.array(texts, type_)).to_pylist() == expected
    digests = mask_function(Mask("sha256"))(pa.array([b"x", None, b""]))
    assert digests.to_pylist() == [hashlib.sha256(b"x").digest(), None, hashlib.sha256(b"").digest()]
    assert mask_function(Mask("sha256"))(pa.array([1, 2])).null_count == 2
    for name in ("sha256", "nullify"):
        with pytest.raises(OptionError, match=f"{name} has no parameters, but got x"):
            mask_function(Mask(name, ("x",)))


@pytest.mark.parametrize(("kind", "length"), [("varchar", 10), ("varchar", 70), ("char", 10), ("char", 70)])
def test_digests_fit_char_and_varchar(kind: str, length: int) -> None:
    field = pa.field("c", pa.string(), metadata={"lockgate.orc.type": f"{kind}({length})"})
    schema = pa.schema([field])
    masks = ColumnMasks(parse_encryption("k:c", "sha256:c", schema), tree := ColumnTree(schema))
    [found, none] = masks.mask_column(tree.top[0], pa.chunked_array([["abc", None]])).to_pylist()
    digest = hashlib.sha256(b"abc").hexdigest().upper()[:length]
    assert (found, none) == (digest.ljust(length) if kind == "char" else digest, None)


# --- properties ---


@given(st.lists(st.none() | st.text()), st.integers(0, 5))
@settings(max_examples=examples(150))
def test_arrays_are_redacted_like_single_texts(texts: list[str | None], start: int) -> None:
    together = mask_function(Mask("redact", ("Xx9", "", "1:2,-2:-1")))(
        pa.array(texts, pa.string()).slice(start)
    )
    for text, found in zip(texts[start:], together.to_pylist(), strict=True):
        assert found == (None if text is None else by_hand(text))


def by_hand(text: str) -> str:
    """Arrays and single texts use the Unicode categories of Apache ORC's documentation."""
    import unicodedata

    groups = {"Lu": "X", "Ll": "x", "Nd": "9", "Nl": "²", "No": "²"}
    first = {"L": "ª", "M": "ः", "S": "$", "P": "."}
    kept = {1, 2, len(text) - 2, len(text) - 1}
    found = []
    for place, each in enumerate(text):
        category = unicodedata.category(each)
        if place in kept or category.startswith("Z"):
            found.append(each)
        elif category in ("Pi", "Pf"):
            found.append("۝")
        else:
            found.append(groups.get(category) or first.get(category[0], "۝"))
    return "".join(found)


@given(st.lists(st.decimals("-1e15", "1e15", places=4) | st.none(), min_size=1))
@settings(max_examples=examples(100))
def test_decimals_are_redacted_digit_by_digit(values: list[Decimal | None]) -> None:
    def expected(value: Decimal | None) -> Decimal | None:
        if value is None:
            return None
        text = format(value.normalize(), "f") if value else "0"
        return Decimal("".join("9" if each.isdigit() else each for each in text))

    assert redacted(values, pa.decimal128(38, 4)) == [expected(value) for value in values]

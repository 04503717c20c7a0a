"""Options are typed, and refused where they are not known or cannot be read."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.errors import KeyMissingError, OptionError
from lockgate.framework import options as o
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.options import known_options, validate_option
from lockgate.framework.options.option import Option, parse_duration
from lockgate.framework.store import Catalog, Schema


def test_defaults_and_typed_values() -> None:
    options = o.TableOptions({"bucket": "4", "target-file-size": "64 MB", "snapshot.time-retained": "2 h"})
    assert options.get_option(o.BUCKET) == 4
    assert options.get_option(o.TARGET_FILE_SIZE) == 64 * 2**20
    assert options.get_option(o.SNAPSHOT_TIME_RETAINED) == timedelta(hours=2)
    assert options.get_option(o.COMMIT_MAX_RETRIES) == o.COMMIT_MAX_RETRIES.default
    assert options["bucket"] == "4"
    assert dict(options) == {"bucket": "4", "target-file-size": "64 MB", "snapshot.time-retained": "2 h"}


def test_an_unknown_option_offers_the_nearest() -> None:
    with pytest.raises(OptionError, match="unknown option 'bukket'; did you mean 'bucket'"):
        o.TableOptions({"bukket": "4"})


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("bucket", "many"),
        ("bucket", "0"),
        ("target-file-size", "big"),
        ("snapshot.time-retained", "soon"),
        ("snapshot.num-retained.min", "0"),
        ("file.compression", "rar"),
        ("deletion-vectors.enabled", "maybe"),
    ],
)
def test_a_malformed_value_names_key_and_value(key: str, text: str) -> None:
    with pytest.raises(OptionError, match=f"option '{key}' cannot be '{text}'"):
        o.TableOptions({key: text})


def test_families_of_others_are_carried_along() -> None:
    options = o.TableOptions({"orc.stripe.size": "1", "owner": "me", "lookup.cache": "full"})
    assert len(options) == 3


def test_options_of_other_engines_are_read_without_complaint() -> None:
    options = o.TableOptions({"sink.parallelism": "3", "bucket": "x"}, strict=False)
    assert options["sink.parallelism"] == "3"
    with pytest.raises(OptionError, match="bucket"):
        options.get_option(o.BUCKET)


def test_changes_are_validated_and_none_removes() -> None:
    options = o.TableOptions({"bucket": "4", "owner": "me"})
    assert dict(options.with_options({"bucket": "8", "owner": None})) == {"bucket": "8"}
    with pytest.raises(OptionError, match="bukket"):
        options.with_options({"bukket": "8"})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500", 0.5), ("500 ms", 0.5), ("3 s", 3), ("10min", 600), ("1 h", 3600), ("2 days", 172800)],
)
def test_durations_are_read_with_their_units(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("option", "type_name", "default"),
    [
        (o.TARGET_FILE_SIZE, "size", "128 mb"),
        (o.FILE_INDEX_THRESHOLD, "size", "500 bytes"),
        (o.COMMIT_MIN_WAIT, "duration", "10 ms"),
        (o.CONSUMER_EXPIRATION, "duration", "0 ms"),
        (o.DELETION_VECTORS, "`true` or `false`", "false"),
        (o.SNAPSHOT_RETAIN_MAX, "whole number, 1 or more", "no limit"),
        (o.SEQUENCE_ORDER, "`ascending`, `descending`", "ascending"),
        (o.SEQUENCE_FIELD, "list", ""),
        (o.FILE_FORMAT, "text", "orc"),
    ],
)
def test_type_and_default_as_documentation_shows_them(
    option: Option[object], type_name: str, default: str
) -> None:
    assert (option.type_name, option.default_text) == (type_name, default)


def test_every_option_has_a_line_of_documentation() -> None:
    assert all(option.doc and "\n" not in option.doc for option in o.KNOWN.values())
    assert all(key == option.key for key, option in o.KNOWN.items())


def test_options_of_columns() -> None:
    assert len(o.TableOptions({"fields.v.stats-mode": "none"})) == 1
    assert len(o.TableOptions({"fields.v.aggregate-function": "sum", "fields.v,w.sequence-group": "x"})) == 2
    with pytest.raises(OptionError, match=r"fields\.v\.aggregate-functions"):
        o.TableOptions({"fields.v.aggregate-functions": "sum"})


def test_an_option_of_columns_is_one_declaration() -> None:
    """Known, parsed, typed and described by being in its module, as docs/how-to-change.md says."""
    assert o.option_of("fields.a.b.count-limit") is o.COUNT_LIMIT
    options = o.TableOptions({"fields.v.count-limit": "3"})
    assert options.get_option(o.COUNT_LIMIT.of_column("v")) == 3
    assert options.get_option(o.COUNT_LIMIT.of_column("w")) is None
    with pytest.raises(OptionError, match=r"'fields\.v\.count-limit' cannot be 'x': expected a whole number"):
        o.validate_option("fields.v.count-limit", "x")


def test_a_refused_option_may_be_off() -> None:
    o.validate_option("row-tracking.enabled", "false")
    with pytest.raises(
        OptionError, match=r"'row-tracking\.enabled' is Paimon's and not supported here: rows"
    ):
        o.validate_option("row-tracking.enabled", "true")


def test_unknown_options_of_orc_are_errors_with_the_nearest_name() -> None:
    o.validate_option("orc.stripe.size", "1048576")
    with pytest.raises(OptionError, match=r"did you mean 'orc\.encrypt'"):
        o.validate_option("orc.encrpyt", "pii:ssn")


def refusal(key: str) -> str | None:
    try:
        validate_option(key, "\u00e4 no value of any option")
    except OptionError as error:
        return str(error)
    return None


def test_a_refused_value_ends_no_list_in_the_middle() -> None:
    """Of allowed values, the last has no comma behind it; known ones are listed once."""
    refusals = {key: text for key in known_options() if (text := refusal(key)) is not None}
    assert len(refusals) > 40
    for key, text in refusals.items():
        assert not text.rstrip("'\"").endswith((",", ", ", ":", "or ")), key
        assert text.count("known:") <= 1, key
        assert ", ," not in text, key


def test_known_keys_are_listed_once(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path, keys=MemoryKeyProvider({"pii@0": b"0123456789abcdef"}))
    catalog.create_namespace("db")
    schema = Schema.from_arrow(pa.schema([("id", pa.int64())]), options={"orc.encrypt": "salary:id"})
    with pytest.raises(KeyMissingError) as raised:
        catalog.create_table("db.t", schema)
    assert str(raised.value).count("known") == 1
    assert "pii" in str(raised.value)

"""The option `orc.integrity`: which files of a table may be read, and which read must be refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from untagged import without_tags

from lockgate.errors import IntegrityError, KeyMissingError, MaskedDataWarning, OptionError
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile, audit_file, write_table
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.confidential.integrity import IntegrityPolicy
from lockgate.framework.store.ddl.schema_changes import SetOption

KEYS = MemoryKeyProvider({"pii@0": b"p" * 16, "fin@0": b"f" * 16})
SCHEMA = pa.schema([("id", pa.int64()), ("ssn", pa.string()), ("pay", pa.int32())])
ROWS = pa.table({"id": [1, 2], "ssn": ["a", "b"], "pay": [10, 20]}).cast(SCHEMA)


def make(folder: Path, keys: MemoryKeyProvider | None = KEYS, **options: str) -> Table:
    catalog = Catalog(str(folder), keys=keys)
    catalog.create_namespace("db", ignore_if_exists=True)
    wanted = {"orc.encrypt": "pii:ssn;fin:pay"} | {
        key.replace("_", "."): value for key, value in options.items()
    }
    return catalog.create_table("db.t", Schema.from_arrow(SCHEMA, options=wanted))


def again(folder: Path, keys: MemoryKeyProvider | None) -> Table:
    return Catalog(str(folder), keys=keys).load_table("db.t")


def only_file(folder: Path) -> Path:
    (path,) = (path for path in (folder / "db.db" / "t").rglob("*.orc"))
    return path


def renamed_key(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"pii", b"pij").replace(b"fin", b"fim"))


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    with EncryptedOrcFile(bytes(data), KEYS) as file:
        stripe = file._tail.footer.stripes[0]
    for position in range(stripe.offset, stripe.offset + stripe.index_length + stripe.data_length, 7):
        data[position] ^= 1
    path.write_bytes(data)


def read_masked(table: Table) -> pa.Table:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskedDataWarning)
        return table.read()


def test_a_table_with_encrypted_columns_requires_tags_from_the_start(tmp_path: Path) -> None:
    assert make(tmp_path / "a").options["orc.integrity"] == "require"
    assert make(tmp_path / "b", orc_integrity="verify").options["orc.integrity"] == "verify"
    assert "orc.integrity" not in make(tmp_path / "c", **{"orc.encrypt": ""}).options
    with pytest.raises(OptionError, match="expected one of: require, verify, ignore"):
        make(tmp_path / "d", orc_integrity="maybe")


@pytest.mark.parametrize(
    ("change", "mode", "refused"),
    [
        (without_tags, "require", "it has no tags"),
        (without_tags, "verify", None),
        (without_tags, "ignore", None),
        (renamed_key, "require", "none of the keys it names is held"),
        (flipped, "require", "do not fit their tag"),
        (flipped, "verify", "do not fit their tag"),
    ],
)
def test_what_is_refused(
    tmp_path: Path, change: Callable[[Path], None], mode: str, refused: str | None
) -> None:
    table = make(tmp_path, orc_integrity=mode)
    table.append(ROWS)
    assert table.read().equals(ROWS)
    change(only_file(tmp_path))
    if refused is None:
        assert table.read().equals(ROWS)
        assert table.read(strict=True).equals(ROWS)
        return
    for strict in (False, True):
        with pytest.raises((IntegrityError, KeyMissingError), match=None if strict else refused):
            table.read(strict=strict)


def test_who_holds_no_key_reads_masks_unverified(tmp_path: Path) -> None:
    make(tmp_path).append(ROWS)
    other = MemoryKeyProvider({"other@0": b"o" * 16})
    for keys in (None, other):
        table = again(tmp_path, keys)
        with pytest.warns(MaskedDataWarning, match="verified"):
            assert table.read()["ssn"].null_count == 2
        with pytest.raises(KeyMissingError):
            table.read(strict=True)
    without_tags(only_file(tmp_path))
    assert read_masked(again(tmp_path, None))["id"].to_pylist() == [1, 2]


def test_one_of_the_keys_is_enough_to_require(tmp_path: Path) -> None:
    make(tmp_path).append(ROWS)
    table = again(tmp_path, MemoryKeyProvider({"fin@0": b"f" * 16}))
    found = read_masked(table)
    assert found["pay"].to_pylist() == [10, 20]
    assert found["ssn"].null_count == 2
    without_tags(only_file(tmp_path))
    with pytest.raises(IntegrityError, match="set the option to 'verify'"):
        read_masked(table)


def test_files_without_encryption_are_read(tmp_path: Path) -> None:
    """Writers that ignore `orc.encrypt` leave them; compact encrypts them."""
    table = make(tmp_path)
    table.append(ROWS)
    path = only_file(tmp_path)
    assert audit_file(path, {"ssn": "pii"}).tagged
    write_table(ROWS, path, field_ids={"id": 0, "ssn": 1, "pay": 2})
    assert table.read().equals(ROWS)
    audit = audit_file(path, {"ssn": "pii"})
    assert (audit.plain, audit.tagged) == (("ssn",), False)


@pytest.mark.parametrize(
    ("held", "mode", "expected"),
    [
        (["pii", "fin"], "require", "require"),
        (["fin"], "require", "require"),
        ([], "require", "verify"),
        (["other"], "require", "verify"),
        (["pii"], "verify", "verify"),
        ([], "ignore", "ignore"),
        (["pii"], "ignore", "ignore"),
    ],
)
def test_the_mode_for_a_scan(tmp_path: Path, held: list[str], mode: str, expected: str) -> None:
    """What the connector is told: "require" is an error without a key, so only who can check requires."""
    make(tmp_path, orc_integrity=mode)
    keys = MemoryKeyProvider({f"{name}@0": b"k" * 16 for name in held}) if held else None
    table = again(tmp_path, keys)
    policy: Any = IntegrityPolicy(table)
    assert policy.mode_of_all([table.schema]) == expected
    assert policy.mode(table.schema) == expected


def test_files_from_before_a_key_was_named_do_not_require_it(tmp_path: Path) -> None:
    table = make(tmp_path, **{"orc.encrypt": "pii:ssn"})
    held = again(tmp_path, MemoryKeyProvider({"fin@0": b"f" * 16}))
    later = table.schema.with_options({"orc.encrypt": "fin:pay"})
    policy = IntegrityPolicy(held)
    assert policy.mode(table.schema) == "verify"
    assert policy.mode(later) == "require"
    assert policy.mode_of_all([table.schema, later]) == "verify"
    assert policy.mode_of_all([later]) == "require"
    assert policy.mode_of_all([]) == "verify"
    assert IntegrityPolicy(held, withheld={"fin"}).mode_of_all([later]) == "verify", (
        "who gets no key checks nothing"
    )


def test_encryption_that_begins_later_requires_tags(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path, keys=MemoryKeyProvider({"pii@0": bytes(16)}))
    catalog.create_namespace("db")
    plain = pa.table({"id": [1], "ssn": ["a"]})
    catalog.create_table("db.t", Schema.from_arrow(plain.schema)).append(plain)
    table = catalog.alter_table("db.t", [SetOption("orc.encrypt", "pii:ssn")])
    assert table.options["orc.integrity"] == "require"
    table.append(pa.table({"id": [2], "ssn": ["b"]}))
    assert sorted(table.read()["ssn"].to_pylist()) == ["a", "b"]
    kept = [SetOption("orc.integrity", "verify"), SetOption("orc.encrypt", "pii:id,ssn")]
    assert catalog.alter_table("db.t", kept).options["orc.integrity"] == "verify"

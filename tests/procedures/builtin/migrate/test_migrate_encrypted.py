"""`migrate_table` of encrypted files: their keys, masks and tags against those of the new table."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import InputError, KeyMissingError, LockgateError, WrongKeyError
from lockgate.framework.keys import KeyProvider, MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile, write_table
from lockgate.framework.store import Catalog, Table
from lockgate.procedures import ProcedureResult

Run = Callable[..., ProcedureResult]

SOURCE = {"src@0": b"key of the files"}
ROWS = pa.table(
    {
        "id": pa.array(range(20), pa.int64()),
        "name": [f"name {i}" for i in range(20)],
        "address": pa.array([{"zip": f"z{i}", "street": f"s{i}"} for i in range(20)]),
    }
)


def _write(folder: Path, file: str, keys: KeyProvider, *, tags: bool = True, **options: Any) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / file
    write_table(ROWS, path, keys=keys, **options)
    if not tags:
        _strip_tags(path)


def _strip_tags(path: Path) -> None:
    """Make of a file what another writer would have written: without any of Lockgate's metadata."""
    from lockgate.framework.orc.format import proto
    from lockgate.framework.orc.format.tail import read_tail
    from lockgate.framework.orc.sources.file_source import open_source

    source = open_source(path, None)
    tail = read_tail(source)
    footer = proto.Footer.FromString(tail.footer.SerializeToString())
    source.close()
    kept = [item for item in footer.metadata if not item.name.startswith("lockgate.")]
    del footer.metadata[:]
    for item in kept:
        footer.metadata.add(name=item.name, value=item.value)
    marks = [each for each in footer.types[0].attributes if not each.key.startswith("lockgate.")]
    del footer.types[0].attributes[:]
    for mark in marks:
        footer.types[0].attributes.add(key=mark.key, value=mark.value)
    content = footer.SerializeToString()
    data = path.read_bytes()
    length = data[-1]
    script = proto.PostScript.FromString(data[-1 - length : -1])
    framed = content
    if script.compression:
        assert len(content) <= script.compression_block_size
        framed = (len(content) << 1 | 1).to_bytes(3, "little") + content
    ahead = data[: len(data) - 1 - length - script.footer_length]
    script.footer_length = len(framed)
    ending = script.SerializeToString()
    path.write_bytes(ahead + framed + ending + bytes([len(ending)]))


def _key_file(path: Path, keys: dict[str, bytes]) -> str:
    entries = [
        {
            "name": name.partition("@")[0],
            "version": 0,
            "algorithm": "AES_CTR_128",
            "material": base64.b64encode(material).decode(),
        }
        for name, material in keys.items()
    ]
    path.write_text(json.dumps({"format": 1, "keys": entries}))
    path.chmod(0o600)
    return f"file:{path}"


def _rows(table: Table) -> list[dict[str, Any]]:
    return table.read(strict=True).sort_by("id").to_pylist()  # type: ignore[no-any-return]  # pyarrow has no types


def _variants(catalog: Catalog, table: Table) -> set[tuple[str, str, str]]:
    found = set()
    for split in table.scan().splits:
        for path in split.paths:
            with EncryptedOrcFile(path, catalog.keys) as file:
                found |= {(each.path, each.key.name, each.mask) for each in file.variants}
    return found


def test_keys_of_the_source_by_an_argument(catalog: Catalog, run: Run, tmp_path: Path) -> None:
    """Keys that the catalog holds too: adopted. Others: rewritten under the catalog's."""
    both = _key_file(tmp_path / "both.json", {"pii@0": bytes(range(16)), **SOURCE})
    _write(tmp_path / "a", "1.orc", MemoryKeyProvider({"pii@0": bytes(range(16))}), encrypt="pii:name")
    result = run(
        "migrate_table", "orc", str(tmp_path / "a"), target_table="db.a", source_keys=both
    ).to_dicts()[0]
    assert (result["files_adopted"], result["files_rewritten"]) == (1, 0)
    _write(tmp_path / "b", "1.orc", MemoryKeyProvider(SOURCE), encrypt="src:name")
    options = "orc.encrypt=pii:name"
    result = run(
        "migrate_table", "orc", str(tmp_path / "b"), target_table="db.b", source_keys=both, options=options
    ).to_dicts()[0]
    assert (result["files_adopted"], result["files_rewritten"]) == (0, 1)
    for name in ("a", "b"):
        table = catalog.load_table(f"db.{name}")
        assert _rows(table) == ROWS.to_pylist()
        assert _variants(catalog, table) == {("name", "pii", "nullify")}


def test_a_key_of_the_same_name_that_is_another(catalog: Catalog, run: Run, tmp_path: Path) -> None:
    """The catalog's `pii` does not open the files: they are written again under it."""
    others = {"pii@0": b"another pii key!"}
    _write(tmp_path / "a", "1.orc", MemoryKeyProvider(others), encrypt="pii:name", mask="sha256:name")
    with pytest.raises(WrongKeyError, match="pii@0"):
        run("migrate_table", "orc", str(tmp_path / "a"), target_table="db.a")
    assert catalog.list_tables("db") == []
    keys = _key_file(tmp_path / "others.json", others)
    result = run(
        "migrate_table", "orc", str(tmp_path / "a"), target_table="db.a", source_keys=keys
    ).to_dicts()[0]
    assert (result["files_adopted"], result["files_rewritten"]) == (0, 1)
    table = catalog.load_table("db.a")
    assert _rows(table) == ROWS.to_pylist()
    assert _variants(catalog, table) == {("name", "pii", "sha256")}


def test_parts_of_columns_and_masks_with_parameters(catalog: Catalog, run: Run, tmp_path: Path) -> None:
    _write(
        tmp_path / "a",
        "1.orc",
        MemoryKeyProvider({"pii@0": bytes(range(16)), "other@0": bytes(range(16, 32))}),
        encrypt="pii:address.zip;other:name",
        mask="redact,`_x`,`2000`:name;sha256:address.zip",
    )
    result = run("migrate_table", "orc", str(tmp_path / "a"), target_table="db.a").to_dicts()[0]
    assert result["files_adopted"] == 1
    table = catalog.load_table("db.a")
    assert _rows(table) == ROWS.to_pylist()
    before = _variants(catalog, table)
    assert {path for path, *_ in before} == {"name", "address.zip"}
    table.append(ROWS)
    assert _variants(catalog, table) == before  # what is written later is as what was adopted


def test_masks_that_differ(catalog: Catalog, run: Run, tmp_path: Path) -> None:
    keys = MemoryKeyProvider({"pii@0": bytes(range(16))})
    _write(tmp_path / "a", "1.orc", keys, encrypt="pii:name", mask="sha256:name")
    _write(tmp_path / "a", "2.orc", keys, encrypt="pii:name")
    with pytest.raises(
        InputError, match=r"not all masked alike \(name: nullify and name: sha256\).*orc\.mask"
    ):
        run("migrate_table", "orc", str(tmp_path / "a"), target_table="db.a")
    result = run(
        "migrate_table", "orc", str(tmp_path / "a"), target_table="db.a", options="orc.mask=sha256:name"
    ).to_dicts()[0]
    assert (result["files_adopted"], result["files_rewritten"]) == (1, 1)
    assert _variants(catalog, catalog.load_table("db.a")) == {("name", "pii", "sha256")}


@pytest.mark.parametrize(
    ("options", "error", "reason"),
    [
        ("orc.encrypt=pii:id", InputError, "column 'name' is encrypted in .* stored in the clear"),
        ("orc.encrypt=", InputError, "column 'name' is encrypted in .* stored in the clear"),
        ("orc.mask=sha256:id", LockgateError, "column 'id' is not encrypted"),
        ("orc.encrypt=gone:name", KeyMissingError, "gone"),
    ],
)
def test_options_that_contradict_the_files(
    catalog: Catalog,
    run: Run,
    tmp_path: Path,
    digest: Callable[[str | Path], str],
    options: str,
    error: type[Exception],
    reason: str,
) -> None:
    _write(tmp_path / "a", "1.orc", MemoryKeyProvider({"pii@0": bytes(range(16))}), encrypt="pii:name")
    before = digest(catalog.warehouse), digest(tmp_path / "a")
    with pytest.raises(error, match=reason):
        run("migrate_table", "orc", str(tmp_path / "a"), target_table="db.a", options=options)
    assert (digest(catalog.warehouse), digest(tmp_path / "a")) == before


def test_tables_of_files_without_tags_do_not_require_any(catalog: Catalog, run: Run, tmp_path: Path) -> None:
    keys = MemoryKeyProvider({"pii@0": bytes(range(16))})
    _write(tmp_path / "tagged", "1.orc", keys, encrypt="pii:name")
    _write(tmp_path / "bare", "1.orc", keys, encrypt="pii:name", tags=False)

    def integrity(name: str, folder: str, options: str | None = None) -> tuple[int, str | None]:
        made = run("migrate_table", "orc", str(tmp_path / folder), target_table=f"db.{name}", options=options)
        table = catalog.load_table(f"db.{name}")
        assert _rows(table) == ROWS.to_pylist()
        return made["files_adopted"], table.options.get("orc.integrity")

    assert integrity("a", "tagged") == (1, "require")
    assert integrity("b", "bare") == (1, "verify")
    assert integrity("c", "bare", "orc.integrity=require") == (0, "require")
    assert integrity("d", "bare", "primary-key=id,bucket=1") == (0, "require")


def test_files_of_hive_without_names(run: Run, tmp_path: Path) -> None:
    table = pa.table({"_col0": [1], "_col1": ["a"]})
    (tmp_path / "a").mkdir()
    write_table(table, tmp_path / "a" / "1.orc")
    with pytest.raises(InputError, match=r"without the names of its columns.*CREATE TABLE spark_catalog"):
        run("migrate_table", "orc", str(tmp_path / "a"), target_table="db.a")

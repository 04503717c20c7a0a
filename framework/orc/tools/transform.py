"""Encryption, decryption and rekeying of complete files."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import InputError, UnsupportedError, nearest
from lockgate.framework.io import named_errors
from lockgate.framework.keys import provider_from
from lockgate.framework.orc.encryption.variants import Variants
from lockgate.framework.orc.format.tail import Tail, read_tail
from lockgate.framework.orc.format.text_kinds import state_kinds
from lockgate.framework.orc.integrity.authenticate import Mode, authenticate
from lockgate.framework.orc.read.reader import EncryptedOrcFile
from lockgate.framework.orc.sources.file_source import Source, open_source
from lockgate.framework.orc.tools.stream_copy import NewKey, Restreamer
from lockgate.framework.orc.write.output import OrcSink, Output
from lockgate.framework.orc.write.writer import RESERVED, WrittenFile, write_batches


@checked_arguments
@named_errors
def rekey(
    source: Any,
    sink: str | os.PathLike[str] | OrcSink,
    keys: Any,
    *,
    new_keys: Any = None,
    rename: Mapping[str, str] | None = None,
    integrity: Mode = "verify",
) -> WrittenFile:
    """Copy an encrypted file with new local keys, wrapped by the newest version of each master key.

    No value is decoded or decompressed: streams are decrypted and encrypted again, stripe by stripe. `keys`
    opens the file. `new_keys` wraps the new local keys; None uses `keys`. `rename` maps key names in the file
    to new names. `source` and `keys` are as in `EncryptedOrcFile`. A path as `sink` is replaced atomically
    when the copy is complete, so it may be the source itself.

    The source is checked by its tags according to `integrity` (see `EncryptedOrcFile`). The copy gets new
    tags, even if the source has none. Raises `IntegrityError` for a changed source, `InputError` if nothing
    is encrypted or `rename` has a key that the file does not use, `EncryptionKeyError` before writing if a
    key is missing, denied or wrong, and `UnsupportedError` for a column that is encrypted with several keys.
    """
    provider, wrapping = provider_from(keys), provider_from(keys if new_keys is None else new_keys)
    with _opened(source) as opened:
        tail = _encrypted_tail(opened, "rekey")
        roots = [variant.root for variant in tail.footer.encryption.variants]
        if len(set(roots)) != len(roots):
            raise UnsupportedError(
                f"a column of {tail.name} is encrypted with several keys, which cannot be rekeyed; "
                "decrypt the file and encrypt it again"
            )
        variants = Variants(tail, provider, strict=True)
        used = [variants.key(number).name for number in range(len(variants))]
        names = dict(rename or {})
        for name in names:
            if name not in used:
                raise InputError(f"{tail.name} uses no key {name!r}{nearest(name, used)}")
        new = []
        for name in used:
            key = wrapping.current_key(names.get(name, name))
            new.append(NewKey(key, wrapping.create_local_key(key)))
        checked, _ = authenticate(opened, tail, variants, integrity)
        columns = tuple(tail.types.top_name(root) for root in sorted(roots))
        with _replacing(sink, source) as output:
            Restreamer(checked, tail, variants, output, new).run()
    return WrittenFile(output.size, int(tail.footer.number_of_rows), tuple(dict.fromkeys(columns)))


@checked_arguments
@named_errors
def decrypt_file(
    source: Any, sink: str | os.PathLike[str] | OrcSink, keys: Any, *, integrity: Mode = "verify"
) -> WrittenFile:
    """Copy an encrypted file without encryption, so that any ORC reader can read the true values.

    No value is decoded: streams, row indexes, Bloom filters and statistics of the encrypted columns replace
    those of their masks. The copy has no tags, since it has no key for them. Arguments and errors are those
    of `rekey`.
    """
    provider = provider_from(keys)
    with _opened(source) as opened:
        tail = _encrypted_tail(opened, "decrypt")
        variants = Variants(tail, provider, strict=True)
        checked, _ = authenticate(opened, tail, variants, integrity)
        with _replacing(sink, source) as output:
            Restreamer(checked, tail, variants, output, None).run()
    return WrittenFile(output.size, int(tail.footer.number_of_rows))


@checked_arguments
@named_errors
def encrypt_file(
    source: Any,
    sink: str | os.PathLike[str] | OrcSink,
    *,
    encrypt: str,
    mask: str | None = None,
    keys: Any,
    timestamp_unit: Literal["ns", "us"] = "ns",
    **options: Any,
) -> WrittenFile:
    """Rewrite a plain ORC file with encrypted columns, stripe by stripe.

    The rows are decoded and written again, since masks need additional streams. `encrypt`, `mask`, `keys` and
    `options` are those of `OrcWriter`; by default, compression and row groups are the source's. Column
    attributes such as Paimon's field ids, CHAR, VARCHAR and the file's metadata are kept. Timestamps are read
    in `timestamp_unit`.

    Raises `InputError` if the file has encrypted columns already, or `encrypt` names none.
    """
    if not encrypt.strip():
        raise InputError("there is nothing to encrypt: name columns as in 'pii:ssn,email'")
    with _opened(source) as opened:
        tail = read_tail(opened)
        if tail.footer.encryption.variants:
            raise InputError(
                f"{tail.name} has encrypted columns already; change its keys by rekey, or decrypt it first"
            )
        settings: dict[str, Any] = {"compression": tail.codec.name.lower()}
        if tail.footer.row_index_stride:
            settings["row_index_stride"] = int(tail.footer.row_index_stride)
        settings["metadata"] = {
            item.name: item.value for item in tail.footer.metadata if not item.name.startswith(RESERVED)
        }
        settings |= {**options, "encrypt": encrypt, "mask": mask, "keys": keys}
        file = EncryptedOrcFile(opened, strict=True, timestamp_unit=timestamp_unit)
        schema = state_kinds(file.schema, tail.types)
        with _replacing(sink, source) as output:
            return write_batches(file.iter_batches(), output, schema=schema, **settings)


def _encrypted_tail(source: Source, verb: str) -> Tail:
    tail = read_tail(source)
    if not tail.footer.encryption.variants:
        raise InputError(f"{tail.name} has no encrypted columns, so there is nothing to {verb}")
    return tail


@contextmanager
def _opened(source: Any) -> Iterator[Source]:
    opened = open_source(source)
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def _replacing(sink: str | os.PathLike[str] | OrcSink, source: object) -> Iterator[Output]:
    """Yield an output whose path appears only when it is complete."""
    if not isinstance(sink, (str, os.PathLike)):
        if sink is source:
            raise InputError(
                "a file object cannot be read and written at once; pass its path, or another file object"
            )
        yield Output(sink)
        return
    path = Path(sink).resolve()
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    output = Output(temporary)
    try:
        if path.exists():
            # Before any data is written: users without access to the old file must not get access to the new
            # one.
            shutil.copymode(path, temporary)
        yield output
        output.close()
        temporary.replace(path)
    except BaseException:
        output.abort()
        temporary.unlink(missing_ok=True)
        raise

"""Whole files: encrypted, decrypted, or put under other keys."""

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
    """Copy an encrypted file under fresh local keys, wrapped by the newest version of each master key.

    No value is decoded or decompressed: streams are decrypted and encrypted again, stripe by stripe. `keys`
    opens the file. `new_keys` (the same, if None) wraps the new local keys, and `rename` maps names of keys
    in the file to the names to use from now on. `source` and `keys` are what `EncryptedOrcFile` takes. A path
    as `sink` is replaced in one step when the copy is complete, so it may be the source itself.

    It checks the source by its tags as `integrity` says (see `EncryptedOrcFile`). The copy gets new tags,
    even if the source has none. Raises `IntegrityError` for a changed source, `InputError` if nothing is
    encrypted or `rename` names a key that the file does not use, an `EncryptionKeyError` before anything is
    written if a key is missing, denied or wrong, and `UnsupportedError` for a column that is encrypted under
    several keys at once.
    """
    provider, wrapping = provider_from(keys), provider_from(keys if new_keys is None else new_keys)
    with _opened(source) as opened:
        tail = _encrypted_tail(opened, "rekey")
        roots = [variant.root for variant in tail.footer.encryption.variants]
        if len(set(roots)) != len(roots):
            raise UnsupportedError(
                f"a column of {tail.name} is encrypted under several keys at once, which cannot be rekeyed; "
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
    """Copy an encrypted file without its encryption, so that any ORC reader sees the true values.

    It decodes no value: streams, row indexes, Bloom filters and statistics of the encrypted columns replace
    those of their masks. The copy has no tags, since there is no key to open them. Arguments and errors are
    those of `rekey`.
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
    """Write a plain ORC file again with encrypted columns, stripe by stripe.

    It decodes the rows and writes them again, since masks need streams of their own. `encrypt`, `mask`,
    `keys` and `options` are those of `OrcWriter`; compression and row groups are the source's, unless
    `options` say otherwise. Attributes of columns, such as Paimon's field ids, stay, and so do CHAR, VARCHAR
    and the file's own metadata. Timestamps are read as `timestamp_unit` says.

    Raises `InputError` if the file has encrypted columns already, or `encrypt` names none.
    """
    if not encrypt.strip():
        raise InputError("there is nothing to encrypt: name columns as in 'pii:ssn,email'")
    with _opened(source) as opened:
        tail = read_tail(opened)
        if tail.footer.encryption.variants:
            raise InputError(
                f"{tail.name} has encrypted columns already; put it under other keys by rekey, or decrypt it "
                "first"
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
    """Give an output whose path comes into being whole or not at all."""
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
            # Before anything is in it: a user without access to the old file gets none to the new one.
            shutil.copymode(path, temporary)
        yield output
        output.close()
        temporary.replace(path)
    except BaseException:
        output.abort()
        temporary.unlink(missing_ok=True)
        raise

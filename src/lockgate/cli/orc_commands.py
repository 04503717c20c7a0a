"""The commands `lockgate orc`: inspect, verify, encrypt and decrypt files, change their keys."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockgate.cli.command_parts import add_command, add_keys_option, answer, existing
from lockgate.cli.exposure_output import is_table, look
from lockgate.cli.progress import watched
from lockgate.cli.verify_command import add_verify
from lockgate.errors import AlreadyExistsError, InputError

if TYPE_CHECKING:
    from lockgate.framework.orc import WrittenFile
    from lockgate.framework.orc.sources.file_source import Source


def add_orc(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of `lockgate orc`."""
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    inspect = add_command(
        commands,
        "inspect",
        _inspect,
        "show what is in an ORC file, and what it reveals without a key",
        """
        lockgate orc inspect people.orc                      # as anyone without a key sees it
        lockgate orc inspect people.orc --keys keys.json     # with true statistics
        lockgate orc inspect people.orc --streams            # the size of every stream
        lockgate orc inspect warehouse/hr.db/people          # a table: files that show encrypted values
        """,
    )
    inspect.add_argument("file", metavar="FILE", help="an ORC file, encrypted or not, or a table's folder")
    inspect.add_argument("--streams", action="store_true", help="list the streams of each column as well")
    add_keys_option(inspect, required=False)
    add_verify(commands)
    _add_encrypt(commands)

    decrypt = add_command(
        commands,
        "decrypt",
        _decrypt,
        "copy an encrypted ORC file without its encryption",
        "lockgate orc decrypt people.orc plain.orc --keys keys.json",
    )
    _add_files(decrypt)
    add_keys_option(decrypt)
    _add_rekey(commands)


def _add_encrypt(commands: Any) -> None:
    encrypt = add_command(
        commands,
        "encrypt",
        _encrypt,
        "write a plain ORC file again with encrypted columns",
        """
        lockgate orc encrypt plain.orc people.orc --keys keys.json --encrypt 'pii:ssn,email'
        lockgate orc encrypt plain.orc people.orc --keys keys.json \\
            --encrypt 'pii:ssn,email;fin:salary' --mask 'sha256:email'
        """,
    )
    _add_files(encrypt)
    add_keys_option(encrypt)
    encrypt.add_argument(
        "--encrypt", required=True, metavar="COLUMNS", help="keys and the columns they encrypt: pii:ssn,email"
    )
    encrypt.add_argument(
        "--mask",
        metavar="MASKS",
        help="masks in place of values: nullify:ssn;sha256:email (default: nullify)",
    )
    encrypt.add_argument("--compression", metavar="CODEC", help="zstd, snappy, ... (default: that of IN)")
    encrypt.add_argument(
        "--timestamp-unit",
        choices=("ns", "us"),
        default="ns",
        help="us also holds years outside 1677 to 2262 (default: ns)",
    )


def _add_rekey(commands: Any) -> None:
    rekey = add_command(
        commands,
        "rekey",
        _rekey,
        "copy an encrypted ORC file under new keys, without decoding",
        """
        lockgate keys roll keys.json pii
        lockgate orc rekey people.orc people.orc --keys keys.json --overwrite
        lockgate orc rekey people.orc copy.orc --keys keys.json \\
            --new-keys jceks:/path/kms.keystore --rename pii=personal
        """,
    )
    _add_files(rekey)
    add_keys_option(rekey)
    rekey.add_argument("--new-keys", metavar="KEYS", help="where the new keys are (default: those of --keys)")
    rekey.add_argument(
        "--rename",
        metavar="OLD=NEW",
        type=_renamed,
        action="append",
        default=[],
        help="use key NEW in place of OLD; repeatable (default: the same names)",
    )


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="IN", help="the file to read")
    parser.add_argument("sink", metavar="OUT", help="the file to write; may be IN with --overwrite")
    parser.add_argument("--overwrite", action="store_true", help="replace OUT if it exists")


def _renamed(text: str) -> tuple[str, str]:
    old, separator, new = text.partition("=")
    if not (old and separator and new):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form OLD=NEW")
    return old, new


def _inspect(options: argparse.Namespace) -> int:
    if is_table(options.file):
        answer(options, *look(options.file))
        return 0
    from lockgate.framework.orc import inspect_file

    found = inspect_file(existing(options.file), options.keys, isolate=True)
    answer(options, found.to_dict(), found.text(streams=options.streams))
    return 0


def _encrypt(options: argparse.Namespace) -> int:
    from lockgate.framework.orc import encrypt_file

    chosen = {"compression": options.compression} if options.compression else {}
    return _write(
        options,
        "encrypting",
        lambda source, sink: encrypt_file(
            source,
            sink,
            encrypt=options.encrypt,
            mask=options.mask,
            keys=options.keys,
            timestamp_unit=options.timestamp_unit,
            **chosen,
        ),
    )


def _decrypt(options: argparse.Namespace) -> int:
    from lockgate.framework.orc import decrypt_file

    return _write(options, "decrypting", lambda source, sink: decrypt_file(source, sink, options.keys))


def _rekey(options: argparse.Namespace) -> int:
    from lockgate.framework.orc import rekey

    rename = dict(options.rename)
    return _write(
        options,
        "rekeying",
        lambda source, sink: rekey(source, sink, options.keys, new_keys=options.new_keys, rename=rename),
    )


def _write(options: argparse.Namespace, verb: str, run: Callable[[Source | str, str], WrittenFile]) -> int:
    path, sink = existing(options.source), options.sink
    if Path(sink).exists() and not options.overwrite:
        raise AlreadyExistsError(f"{sink} exists; pass --overwrite to replace it")
    try:
        with watched(path, verb) as source:
            written = run(source, sink)
    except OSError as error:
        if error.errno is None:
            raise
        # The output has another name until it is complete.
        where = path if error.filename == path else sink
        raise InputError(f"{where}: {error.strerror}") from None
    encrypted = list(written.encrypted_columns)
    answer(
        options,
        {"file": sink, "size": written.size, "rows": written.row_count, "encrypted_columns": encrypted},
        f"{sink}: {written.size:,} bytes, {written.row_count:,} rows, "
        f"encrypted: {', '.join(encrypted) or 'nothing'}",
    )
    return 0

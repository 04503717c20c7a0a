"""The commands `lockgate orc`: look into ORC files, encrypt them, decrypt them, change their keys."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockgate.errors import AlreadyExistsError, InputError, NotFoundError

if TYPE_CHECKING:
    from lockgate.framework.orc import WrittenFile


def add_orc(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of `lockgate orc`."""
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    inspect = _command(commands, "inspect", _inspect, "show what is in an ORC file, and what it reveals")
    inspect.add_argument("file", metavar="FILE", help="an ORC file, encrypted or not")
    _add_keys(inspect, required=False)

    encrypt = _command(commands, "encrypt", _encrypt, "write a plain ORC file again with encrypted columns")
    _add_files(encrypt)
    _add_keys(encrypt)
    encrypt.add_argument(
        "--encrypt", required=True, metavar="COLUMNS", help="which key encrypts what: pii:ssn,email"
    )
    encrypt.add_argument(
        "--mask", metavar="MASKS", help="what is shown instead: nullify:ssn;sha256:email (default: nullify)"
    )
    encrypt.add_argument("--compression", metavar="CODEC", help="zstd, snappy, ... (default: as before)")
    encrypt.add_argument(
        "--timestamp-unit", choices=("ns", "us"), default="ns", help="us also holds years beyond 1677 to 2262"
    )

    decrypt = _command(commands, "decrypt", _decrypt, "copy an encrypted ORC file without its encryption")
    _add_files(decrypt)
    _add_keys(decrypt)

    rekey = _command(commands, "rekey", _rekey, "copy an encrypted ORC file under new keys, undecoded")
    _add_files(rekey)
    _add_keys(rekey)
    rekey.add_argument("--new-keys", metavar="KEYS", help="where the new keys are (default: as --keys)")
    rekey.add_argument(
        "--rename",
        metavar="OLD=NEW",
        action="append",
        default=[],
        help="use key NEW in place of OLD; may be given several times (default: the same names)",
    )


def _command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], text: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=f"{text.capitalize()}."
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)
    return parser


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="IN", help="the file to read")
    parser.add_argument("sink", metavar="OUT", help="the file to write; may be IN with --overwrite")
    parser.add_argument("--overwrite", action="store_true", help="replace OUT if it exists")


def _add_keys(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    parser.add_argument(
        "--keys", required=required, metavar="KEYS", help="a key file, or a specification scheme:..."
    )


def _inspect(options: argparse.Namespace) -> int:
    from lockgate.framework.orc import inspect_file

    found = inspect_file(_existing(options.file), options.keys)
    print(json.dumps(found.to_dict()) if options.json else found)
    return 0


def _encrypt(options: argparse.Namespace) -> int:
    from lockgate.framework.orc import encrypt_file

    chosen = {"compression": options.compression} if options.compression else {}
    return _write(
        options,
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

    return _write(options, lambda source, sink: decrypt_file(source, sink, options.keys))


def _rekey(options: argparse.Namespace) -> int:
    from lockgate.framework.orc import rekey

    rename: dict[str, str] = {}
    for text in options.rename:
        old, separator, new = text.partition("=")
        if not (old and separator and new):
            raise InputError(f"--rename: {text!r} is not written OLD=NEW")
        rename[old] = new
    return _write(
        options,
        lambda source, sink: rekey(source, sink, options.keys, new_keys=options.new_keys, rename=rename),
    )


def _write(options: argparse.Namespace, run: Callable[[str, str], WrittenFile]) -> int:
    source, sink = _existing(options.source), options.sink
    if Path(sink).exists() and not options.overwrite:
        raise AlreadyExistsError(f"{sink} exists; pass --overwrite to replace it")
    try:
        written = run(source, sink)
    except OSError as error:
        if error.errno is None:
            raise
        # What is written has another name until it is complete.
        where = source if error.filename == source else sink
        raise InputError(f"{where}: {error.strerror}") from None
    encrypted = list(written.encrypted_columns)
    if options.json:
        print(
            json.dumps(
                {
                    "file": sink,
                    "size": written.size,
                    "rows": written.row_count,
                    "encrypted_columns": encrypted,
                }
            )
        )
    else:
        shown = ", ".join(encrypted) or "nothing"
        print(f"{sink}: {written.size:,} bytes, {written.row_count:,} rows, encrypted: {shown}")
    return 0


def _existing(path: str) -> str:
    if not Path(path).is_file():
        raise NotFoundError(f"there is no file {path}")
    return path

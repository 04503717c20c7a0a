"""The commands `lockgate keys`: make, list and roll keys; no byte of a key is ever printed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockgate.cli.command_parts import KEYS_HELP, add_command, answer
from lockgate.errors import AlreadyExistsError, InputError

if TYPE_CHECKING:
    from lockgate.framework.keys import KeyMetadata


def add_keys(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of `lockgate keys`."""
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    create = add_command(
        commands,
        "create",
        _create,
        "create keys, in a new key file or an existing key store",
        """
        lockgate keys create keys.json pii fin              # a new key file, mode 0600
        lockgate keys create keys.json health --bits 256    # one more key in it, for AES-256
        """,
    )
    create.add_argument("keys", metavar="KEYS", help=f"{KEYS_HELP}; a missing key file is created")
    create.add_argument("names", metavar="NAME", nargs="+", help="a key to create, for instance pii")
    create.add_argument(
        "--bits", type=int, choices=(128, 256), default=128, help="length of each key (default: 128)"
    )
    listing = add_command(
        commands,
        "list",
        _list,
        "list keys: name, version, algorithm, and which version new files use",
        """
        lockgate keys list keys.json
        lockgate keys list jceks:/path/kms.keystore --json
        """,
    )
    listing.add_argument("keys", metavar="KEYS", help=KEYS_HELP)
    roll = add_command(
        commands,
        "roll",
        _roll,
        "add a new version to keys; new files use it, existing files still need the old one",
        """
        lockgate keys roll keys.json pii                    # then: lockgate orc rekey, or CALL compact
        lockgate keys roll keys.json pii --bits 256         # AES-256 from now on
        """,
    )
    roll.add_argument("keys", metavar="KEYS", help=KEYS_HELP)
    roll.add_argument("names", metavar="NAME", nargs="+", help="a key to roll")
    roll.add_argument(
        "--bits",
        type=int,
        choices=(128, 256),
        help="length of the new version (default: that of the old one)",
    )


def _create(options: argparse.Namespace) -> int:
    from lockgate.framework.keys import create_key, create_key_file, list_keys

    if len(set(options.names)) != len(options.names):
        raise InputError("a key is named twice")
    path, where = _path_of_key_file(options.keys), _shown(options.keys)
    if path is not None and not Path(path).exists():
        create_key_file(path, options.names, options.bits)
        made = list_keys(options.keys)
        text = f"{path}: {_count(made)} of {options.bits} bits in a new key file (mode 0600)"
    else:
        # All of them or none.
        held = {key.name for key in list_keys(options.keys)}
        for name in options.names:
            if name in held:
                raise AlreadyExistsError(
                    f"{where} already has a key {name!r}; to create a new version, run: "
                    f"lockgate keys roll {where} {name}"
                )
        made = [create_key(options.keys, name, options.bits) for name in options.names]
        text = f"{where}: {_count(made)} of {options.bits} bits: {', '.join(map(str, made))}"
    warning = "Keep a copy where only you can read it: without its keys, encrypted columns are lost."
    answer(options, {"keys": [_described(key, made) for key in made]}, f"{text}\n{warning}")
    return 0


def _list(options: argparse.Namespace) -> int:
    from lockgate.framework.keys import list_keys

    keys = list_keys(options.keys)
    lines = []
    for key in keys:
        mark = "" if _described(key, keys)["newest"] else "  (older)"
        lines.append(f"{key}  {key.algorithm.name}{mark}")
    answer(options, {"keys": [_described(key, keys) for key in keys]}, "\n".join(lines) or "no keys")
    return 0


def _roll(options: argparse.Namespace) -> int:
    from lockgate.framework.keys import provider_from, roll_key

    provider = provider_from(options.keys)
    for name in options.names:
        provider.current_key(name)  # all of them or none
    made = [roll_key(provider, name, options.bits) for name in options.names]
    text = ", ".join(f"{key} ({key.algorithm.name})" for key in made)
    advice = "New files use it. Existing files need the old version until they are rekeyed or compacted."
    answer(
        options,
        {"keys": [_described(key, made) for key in made]},
        f"{_shown(options.keys)}: {text}\n{advice}",
    )
    return 0


def _path_of_key_file(spec: str) -> str | None:
    """Return the path of the key file in a specification; None if it names another provider."""
    scheme, separator, rest = spec.partition(":")
    if not separator or len(scheme) == 1 or not scheme.isalnum():
        return spec
    if scheme.lower() != "file":
        return None
    return rest[2:] if rest.startswith("///") else rest


def _shown(spec: str) -> str:
    """Return a specification without any possible password."""
    return _path_of_key_file(spec) or f"{spec.partition(':')[0]}:..."


def _described(key: KeyMetadata, among: list[KeyMetadata]) -> dict[str, Any]:
    newest = max(each.version for each in among if each.name == key.name)
    return {
        "name": key.name,
        "version": key.version,
        "algorithm": key.algorithm.name,
        "newest": key.version == newest,
    }


def _count(keys: list[KeyMetadata]) -> str:
    return f"{len(keys)} new key{'' if len(keys) == 1 else 's'}"

"""The commands `lockgate lookup`: show, rebuild and remove the lookup caches on this host."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockgate.cli.command_parts import add_command, answer
from lockgate.errors import LookupCacheError, NotFoundError

if TYPE_CHECKING:
    from lockgate.lookup import CacheStatus


def add_lookup(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of `lockgate lookup`."""
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add(
        commands,
        "status",
        _status,
        "show lookup caches: columns, snapshot, rows, size, and whether an owner runs",
    )
    _add(commands, "rebuild", _rebuild, "discard cached data, so that the next lookup reloads the table")
    drop = _add(commands, "drop", _drop, "remove lookup caches from the disk")
    drop.add_argument("--force", action="store_true", help="remove caches whose owner is running as well")


def _add(commands: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    parser = add_command(commands, name, run, text, f"lockgate lookup {name} /var/cache/lookups")
    parser.add_argument(
        "directory", metavar="DIR", help="one cache, or the folder that holds them (lookup.cache-dir)"
    )
    return parser


def _found(options: argparse.Namespace) -> list[CacheStatus]:
    from lockgate.lookup import find_caches

    found = find_caches(Path(options.directory))
    if not found:
        raise NotFoundError(f"there is no lookup cache in {options.directory}")
    return found


def _status(options: argparse.Namespace) -> int:
    found = _found(options)
    if options.json:
        for cache in found:
            answer(options, cache.to_dict(), "")
    else:
        print("\n".join(map(str, found)))
    return 0


def _rebuild(options: argparse.Namespace) -> int:
    return _remove(options, "will be built again")


def _drop(options: argparse.Namespace) -> int:
    running = [cache.directory for cache in _found(options) if cache.cache_server_runs]
    if running and not options.force:
        raise LookupCacheError(
            f"an owner is running for {', '.join(running)}: end its driver, or use --force"
        )
    return _remove(options, "removed")


def _remove(options: argparse.Namespace, what: str) -> int:
    from lockgate.lookup import remove_cache

    for cache in _found(options):
        remove_cache(cache)
        found = {"directory": cache.directory, "bytes": cache.bytes}
        answer(options, found, f"{cache.directory}: {what} ({cache.bytes} bytes)")
    return 0

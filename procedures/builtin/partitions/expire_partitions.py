"""`expire_partitions`: removal of partitions that are old by their values, or have not changed for long.

Source: Paimon's `PartitionExpire`, `PartitionTimeExtractor` and options `partition.expiration-*`.
"""

from __future__ import annotations

import datetime
import logging
import re
from collections.abc import Callable, Iterable
from typing import Any

from lockgate.errors import InputError
from lockgate.framework.access import Action
from lockgate.framework.options.option import parse_duration
from lockgate.framework.store import Table
from lockgate.framework.store.maintenance import DROPPED, Partition, PartitionFiles
from lockgate.framework.store.system.texts import cast_text
from lockgate.framework.types import DatePattern, date_pattern, timestamp_of
from lockgate.procedures.arguments import OPTIONS, parse_pairs, with_options
from lockgate.procedures.procedure import Parameter, Procedure, ProcedureContext

_STRATEGIES = ("values-time", "update-time")
_MOST = 100
_DEFAULT_PATTERN = "yyyy-M-d[ H:m:s]"
_log = logging.getLogger("lockgate.procedures")


_OPTIONS = (
    "partition.expiration-time",
    "partition.timestamp-formatter",
    "partition.timestamp-pattern",
    "partition.expiration-strategy",
    "partition.expiration-max-num",
)


class ExpirePartitions(Procedure):
    """Removes partitions older than a time, oldest first; no file is read, so no key is needed.

    Arguments that are not given come from the table's options `partition.expiration-time`,
    `partition.timestamp-formatter`, `partition.timestamp-pattern`, `partition.expiration-strategy` and
    `partition.expiration-max-num`.
    """

    name = "expire_partitions"
    right = Action.DELETE
    description = "Remove partitions of a table that are older than a time."
    parameters = (
        Parameter("table", "STRING", doc="the table, 'database.table'"),
        Parameter("expiration_time", "STRING", None, "age above which a partition goes: '7 d'"),
        Parameter("timestamp_formatter", "STRING", None, "form of times in partition values: 'yyyyMMdd'"),
        Parameter("timestamp_pattern", "STRING", None, "how values make a time: '$day $hour'"),
        Parameter("expire_strategy", "STRING", None, "'values-time', or 'update-time': of the newest file"),
        Parameter("max_expires", "INT", None, "most partitions removed by this call"),
        Parameter("dry_run", "BOOLEAN", False, "only count what would be removed"),
        Parameter("options", "STRING", None, OPTIONS),
    )
    result = (*DROPPED, ("expired_partitions", "STRING"), ("unparsed_partitions", "STRING"))

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Expire; partitions whose values are null or not in the formatter's form stay, and are reported."""
        table = context.table(arguments["table"])
        table = with_options(table, parse_pairs(arguments["options"]), _OPTIONS)
        if not table.schema.partition_keys:
            raise InputError(f"table {table.identifier} has no partitions")
        files = PartitionFiles.of(table)
        bound = datetime.datetime.now() - _age(table, arguments)
        times, unparsed = _times(files, arguments)
        old = sorted((time, text, each) for each, (time, text) in times.items() if time < bound)
        chosen = [each for _, _, each in old[: _most(table, arguments)]]
        dropped = files.drop(chosen, dry_run=arguments["dry_run"])
        return [(*dropped, _names(table, chosen), _names(table, unparsed))]


def _names(table: Table, partitions: Iterable[Partition]) -> str:
    return ";".join(table.paths.partition_path(each).replace("/", ",") for each in partitions)


def _option(table: Table, arguments: dict[str, Any], argument: str, key: str) -> str | None:
    given = arguments[argument]
    return table.schema.options.get(key) if given is None else str(given)


def _age(table: Table, arguments: dict[str, Any]) -> datetime.timedelta:
    text = _option(table, arguments, "expiration_time", "partition.expiration-time")
    if text is None:
        raise InputError(
            f"expire_partitions needs expiration_time, because table {table.identifier} has no option "
            "'partition.expiration-time'"
        )
    try:
        return parse_duration(text)
    except (ValueError, OverflowError) as error:
        raise InputError(f"expiration_time cannot be {text!r}: {error}") from None


def _most(table: Table, arguments: dict[str, Any]) -> int:
    text = _option(table, arguments, "max_expires", "partition.expiration-max-num")
    if text is not None and not (text.isdecimal() and int(text) > 0):
        raise InputError(f"max_expires cannot be {text!r}: give a number above 0")
    return _MOST if text is None else int(text)


def _times(
    files: PartitionFiles, arguments: dict[str, Any]
) -> tuple[dict[Partition, tuple[datetime.datetime, str]], list[Partition]]:
    """Return the time and the name of each partition that has a time, and the partitions that have none."""
    table = files.table
    strategy = _option(table, arguments, "expire_strategy", "partition.expiration-strategy") or _STRATEGIES[0]
    if strategy not in _STRATEGIES:
        raise InputError(f"expire_strategy cannot be {strategy!r}: use {' or '.join(map(repr, _STRATEGIES))}")
    every = files.partitions(lambda partition: True)
    time_of = _by_values(table, arguments) if strategy == _STRATEGIES[0] else _by_files(files)
    found, unparsed = {}, []
    for partition in every:
        name, time = table.paths.partition_path(partition), time_of(partition)
        if time is None:
            unparsed.append(partition)
            _log.warning("partition %s of %s has no time and does not expire", name, table.identifier)
        else:
            found[partition] = (time, name)
    return found, unparsed


def _by_files(files: PartitionFiles) -> Callable[[Partition], datetime.datetime | None]:
    newest: dict[Partition, int] = {}
    for entry in files.entries:
        if entry.file.creation_time_millis is not None:
            before = newest.get(entry.partition, 0)
            newest[entry.partition] = max(before, entry.file.creation_time_millis)
    # Manifests hold what the clock on the wall showed, as if it were UTC.
    return lambda partition: (
        timestamp_of(newest[partition] * 1000, utc=False) if partition in newest else None
    )


def _by_values(table: Table, arguments: dict[str, Any]) -> Callable[[Partition], datetime.datetime | None]:
    names = table.schema.partition_keys
    types = table.schema.types_of(names)
    pattern = _option(table, arguments, "timestamp_pattern", "partition.timestamp-pattern") or f"${names[0]}"
    form = _option(table, arguments, "timestamp_formatter", "partition.timestamp-formatter")
    dates = _date_pattern(_DEFAULT_PATTERN if form is None else form)
    unknown = [each for each in re.findall(r"\$(\w+)", pattern) if each not in names]
    if unknown:
        raise InputError(f"timestamp_pattern names {unknown[0]!r}, which is not a partition column")
    # The longest name comes first, since a name may begin with another.
    column = re.compile("|".join(re.escape(f"${name}") for name in sorted(names, key=len, reverse=True)))

    def time_of(partition: Partition) -> datetime.datetime | None:
        values = dict(zip((f"${name}" for name in names), zip(types, partition, strict=True), strict=True))
        used = column.findall(pattern)
        if any(values[name][1] is None for name in used):
            return None
        text = column.sub(lambda match: cast_text(*values[match[0]]), pattern)
        return dates.parse(text)

    return time_of


def _date_pattern(pattern: str) -> DatePattern:
    try:
        return date_pattern(pattern)
    except InputError as error:
        raise InputError(f"timestamp_formatter: {error}") from None

"""`expire_partitions`: removal of partitions that are old by their values, or have not changed for long.

Source: Paimon's `PartitionExpire`, `PartitionTimeExtractor` and options `partition.expiration-*`.
"""

from __future__ import annotations

import datetime
import logging
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from lockgate.errors import InputError
from lockgate.framework.access import Action
from lockgate.framework.options import (
    EXPIRATION_MAX_NUM,
    EXPIRATION_STRATEGY,
    EXPIRATION_TIME,
    TIMESTAMP_FORMATTER,
    TIMESTAMP_PATTERN,
    Option,
)
from lockgate.framework.store import Table
from lockgate.framework.store.maintenance import DROPPED, Partition, PartitionFiles
from lockgate.framework.store.system.texts import cast_text
from lockgate.framework.types import date_pattern, timestamp_of
from lockgate.procedures.arguments import OPTIONS, parse_pairs, with_options
from lockgate.procedures.procedure import Parameter, Procedure, ProcedureContext

_log = logging.getLogger("lockgate.procedures")


_OPTIONS = (
    EXPIRATION_TIME.key,
    EXPIRATION_STRATEGY.key,
    EXPIRATION_MAX_NUM.key,
    TIMESTAMP_PATTERN.key,
    TIMESTAMP_FORMATTER.key,
)

T = TypeVar("T")


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
        bound = _time_before_now(_age(table, arguments))
        times, unparsed = _times(files, arguments)
        old = sorted((time, text, each) for each, (time, text) in times.items() if time < bound)
        most = _chosen(table, arguments, "max_expires", EXPIRATION_MAX_NUM)
        chosen = [each for _, _, each in old[:most]]
        dropped = files.drop(chosen, dry_run=arguments["dry_run"])
        return [(*dropped, _names(table, chosen), _names(table, unparsed))]


def _time_before_now(age: datetime.timedelta) -> datetime.datetime:
    try:
        return datetime.datetime.now() - age
    except OverflowError:  # before the year 1: nothing is so old
        return datetime.datetime.min


def _names(table: Table, partitions: Iterable[Partition]) -> str:
    return ";".join(table.paths.partition_path(each).replace("/", ",") for each in partitions)


def _chosen(table: Table, arguments: dict[str, Any], argument: str, option: Option[T]) -> T:
    """Return the value of an argument, else of the table's option; InputError that names the argument."""
    given = arguments[argument]
    if given is None:
        return table.schema.table_options.get_option(option)
    try:
        return option.parse(str(given))
    except ValueError as error:
        raise InputError(f"{argument} cannot be {given!r}: {error}") from None


def _age(table: Table, arguments: dict[str, Any]) -> datetime.timedelta:
    age = _chosen(table, arguments, "expiration_time", EXPIRATION_TIME)
    if age is None:
        raise InputError(
            f"expire_partitions needs expiration_time, because table {table.identifier} has no option "
            f"{EXPIRATION_TIME.key!r}"
        )
    return age


def _times(
    files: PartitionFiles, arguments: dict[str, Any]
) -> tuple[dict[Partition, tuple[datetime.datetime, str]], list[Partition]]:
    """Return the time and the name of each partition that has a time, and the partitions that have none."""
    table = files.table
    strategy = _chosen(table, arguments, "expire_strategy", EXPIRATION_STRATEGY)
    every = files.partitions(lambda partition: True)
    time_of = _by_values(table, arguments) if strategy == "values-time" else _by_files(files)
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
    pattern = _chosen(table, arguments, "timestamp_pattern", TIMESTAMP_PATTERN)
    pattern = f"${names[0]}" if pattern is None else pattern
    dates = date_pattern(_chosen(table, arguments, "timestamp_formatter", TIMESTAMP_FORMATTER))
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

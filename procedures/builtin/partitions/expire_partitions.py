"""`expire_partitions`: removal of partitions that are old by their values, or have not changed for long.

Source: Paimon's `PartitionExpire`, `PartitionTimeExtractor` and options `partition.expiration-*`.
"""

from __future__ import annotations

import datetime
import logging
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, TypeVar

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
from lockgate.framework.store.maintenance import Partition, PartitionFiles
from lockgate.framework.store.system.texts import cast_text
from lockgate.framework.types import date_pattern, timestamp_of
from lockgate.procedures.arguments import parse_pairs, with_options
from lockgate.procedures.builtin.partitions.drop_partition import DroppedPartitions
from lockgate.procedures.procedure import ProcedureContext
from lockgate.procedures.typed_procedure import DryRun, Int, TableName, TypedProcedure

_log = logging.getLogger("lockgate.procedures")


_OPTIONS = (
    EXPIRATION_TIME.key,
    EXPIRATION_STRATEGY.key,
    EXPIRATION_MAX_NUM.key,
    TIMESTAMP_PATTERN.key,
    TIMESTAMP_FORMATTER.key,
)

T = TypeVar("T")


@dataclass(frozen=True)
class _Arguments:
    table: TableName
    expiration_time: Annotated[
        str | None, "age above which a partition goes: `7 d` (default: the option)"
    ] = None
    timestamp_formatter: Annotated[
        str | None,
        "form of the times, a pattern of Java's `DateTimeFormatter` with a year, a month and a day: the "
        "letters `y u M L d D H m s S`, quotes and `[ ]`, at most 200 characters (default: "
        "`yyyy-MM-dd HH:mm:ss` or `yyyy-MM-dd`)",
    ] = None
    timestamp_pattern: Annotated[
        str | None,
        "how the values of partition columns form a time: `$day $hour` (default: the first partition column)",
    ] = None
    expire_strategy: Annotated[
        str | None,
        "`values-time`: by the partition's values; `update-time`: by its newest file (default: "
        "`values-time`)",
    ] = None
    max_expires: Annotated[Int | None, "most partitions removed by one call (default: 100)"] = None
    dry_run: DryRun = False
    options: Annotated[str | None, "options of the table for this call: the five options above"] = None


@dataclass(frozen=True)
class _Row(DroppedPartitions):
    expired_partitions: Annotated[str, "their names, separated by `;`"]
    unparsed_partitions: Annotated[str, "names of the partitions that stay because they have no time"]


class ExpirePartitions(TypedProcedure[_Arguments, _Row]):
    """Remove partitions of a table that are older than a time.

    Arguments that are not given come from the table's options `partition.expiration-time`,
    `partition.timestamp-formatter`, `partition.timestamp-pattern`, `partition.expiration-strategy` and
    `partition.expiration-max-num`.
    """

    name = "expire_partitions"
    right = Action.DELETE

    def run(self, context: ProcedureContext, arguments: _Arguments) -> list[_Row]:
        """Expire; partitions whose values are null or not in the formatter's form stay, and are reported."""
        table = context.table(arguments.table)
        table = with_options(table, parse_pairs(arguments.options), _OPTIONS)
        if not table.schema.partition_keys:
            raise InputError(f"table {table.identifier} has no partitions")
        files = PartitionFiles.of(table)
        bound = _time_before_now(_age(table, arguments))
        times, unparsed = _times(files, arguments)
        old = sorted((time, text, each) for each, (time, text) in times.items() if time < bound)
        most = _chosen(table, arguments, "max_expires", EXPIRATION_MAX_NUM)
        chosen = [each for _, _, each in old[:most]]
        dropped = files.drop(chosen, dry_run=arguments.dry_run)
        return [_Row(*dropped, _names(table, chosen), _names(table, unparsed))]


def _time_before_now(age: datetime.timedelta) -> datetime.datetime:
    try:
        return datetime.datetime.now() - age
    except OverflowError:  # before the year 1: nothing is so old
        return datetime.datetime.min


def _names(table: Table, partitions: Iterable[Partition]) -> str:
    return ";".join(table.paths.partition_path(each).replace("/", ",") for each in partitions)


def _chosen(table: Table, arguments: _Arguments, argument: str, option: Option[T]) -> T:
    """Return the value of an argument, else of the table's option; InputError that names the argument."""
    given = getattr(arguments, argument)
    if given is None:
        return table.schema.table_options.get_option(option)
    try:
        return option.parse(str(given))
    except ValueError as error:
        raise InputError(f"{argument} cannot be {given!r}: {error}") from None


def _age(table: Table, arguments: _Arguments) -> datetime.timedelta:
    age = _chosen(table, arguments, "expiration_time", EXPIRATION_TIME)
    if age is None:
        raise InputError(
            f"expire_partitions needs expiration_time, because table {table.identifier} has no option "
            f"{EXPIRATION_TIME.key!r}"
        )
    return age


def _times(
    files: PartitionFiles, arguments: _Arguments
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


def _by_values(table: Table, arguments: _Arguments) -> Callable[[Partition], datetime.datetime | None]:
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

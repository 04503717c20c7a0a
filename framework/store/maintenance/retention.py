"""Retention: the number and age of snapshots and changelogs to keep, from options and arguments.

Source: Paimon's `ExpireConfig`, and its options `snapshot.*` and `changelog.*`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from lockgate.errors import InputError
from lockgate.framework import options as changelog_options
from lockgate.framework import options as table_options

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle


class Retention(NamedTuple):
    """The limits of one expiry: beyond the newest `most` all go, of the newest `least` none.

    Of those in between go the ones from before `older_than_millis`, in milliseconds since the epoch. At most
    `limit` go.
    """

    most: int
    least: int
    older_than_millis: int
    limit: int


def snapshot_retention(
    table: TableHandle,
    most: int | None = None,
    least: int | None = None,
    older_than_millis: int | None = None,
    limit: int | None = None,
) -> Retention:
    """Return the limits for snapshots; what is None comes from options. InputError for a contradiction."""
    options = table.options
    most = options.get_option(table_options.SNAPSHOT_RETAIN_MAX) if most is None else most
    if least is None:
        # A default for the least must not contradict a wish for the most.
        least = min(options.get_option(table_options.SNAPSHOT_RETAIN_MIN), most)
    if older_than_millis is None:
        older_than_millis = _before(table, options.get_option(table_options.SNAPSHOT_TIME_RETAINED))
    limit = options.get_option(table_options.SNAPSHOT_EXPIRE_LIMIT) if limit is None else limit
    return _checked(Retention(most, least, older_than_millis, limit))


def changelog_retention(
    table: TableHandle,
    most: int | None = None,
    least: int | None = None,
    older_than_millis: int | None = None,
    limit: int | None = None,
) -> Retention:
    """Return the limits for changelogs; what no option says is as for snapshots."""
    options, snapshots = table.options, snapshot_retention(table)
    most = _first(most, options.get_option(changelog_options.CHANGELOG_RETAIN_MAX), snapshots.most)
    if least is None:
        named = options.get_option(changelog_options.CHANGELOG_RETAIN_MIN)
        least = min(_first(named, snapshots.least), most)
    time = options.get_option(changelog_options.CHANGELOG_TIME_RETAINED)
    by_option = None if time is None else _before(table, time)
    older_than_millis = _first(older_than_millis, by_option, snapshots.older_than_millis)
    return _checked(Retention(most, least, older_than_millis, _first(limit, snapshots.limit)))


def changes_outlive(table: TableHandle) -> bool:
    """Return whether changelogs outlive snapshots; streams then start from the options, not from a snapshot.

    Source: Paimon's `CoreOptions.changelogLifecycleDecoupled`.
    """
    options = table.options
    most = options.get_option(changelog_options.CHANGELOG_RETAIN_MAX)
    least = options.get_option(changelog_options.CHANGELOG_RETAIN_MIN)
    time = options.get_option(changelog_options.CHANGELOG_TIME_RETAINED)
    return (
        (most is not None and most > options.get_option(table_options.SNAPSHOT_RETAIN_MAX))
        or (least is not None and least > options.get_option(table_options.SNAPSHOT_RETAIN_MIN))
        or (time is not None and time > options.get_option(table_options.SNAPSHOT_TIME_RETAINED))
    )


def forget_idle_consumers(table: TableHandle, *, dry_run: bool) -> Iterable[int]:
    """Return the snapshots that consumers need next; those idle for too long are forgotten."""
    idle = table.options.get_option(table_options.CONSUMER_EXPIRATION)
    forgotten = set()
    if idle:
        times = table.consumer_files.modified_millis()
        now = table.snapshot_files.now_millis() if times else 0
        oldest = now - int(idle.total_seconds() * 1000)
        forgotten = {name for name, modified in times.items() if modified < oldest}
    if not dry_run:
        for name in forgotten:
            table.consumer_files.delete(name)
    return [needed for name, needed in table.consumer_files.load_all().items() if name not in forgotten]


def _first(*values: int | None) -> int:
    return next(value for value in values if value is not None)


def _before(table: TableHandle, age: timedelta) -> int:
    return table.snapshot_files.now_millis() - int(age.total_seconds() * 1000)


def _checked(retention: Retention) -> Retention:
    if retention.least < 1 or retention.most < retention.least:
        raise InputError(
            "retain_min must be 1 or more and retain_max not below it, not "
            f"{retention.least} and {retention.most}"
        )
    if retention.limit < 0:
        raise InputError(f"max_deletes cannot be {retention.limit}")
    return retention

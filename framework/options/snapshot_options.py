"""The options of a table that say how commits are made and how long snapshots and consumers are kept."""

from __future__ import annotations

from datetime import timedelta

from lockgate.framework.options.option import Option, at_least, one_of, parse_duration

SNAPSHOT_RETAIN_MIN = Option(
    "snapshot.num-retained.min", at_least(1), 10, "snapshots that expiry keeps whatever their age"
)
SNAPSHOT_RETAIN_MAX = Option(
    "snapshot.num-retained.max",
    at_least(1),
    2**31 - 1,
    "number of snapshots above which expiry removes even young ones",
)
SNAPSHOT_TIME_RETAINED = Option(
    "snapshot.time-retained", parse_duration, timedelta(hours=1), "age above which expiry removes snapshots"
)
# Paimon's default of 50 is meant for the expiry in each of its commits, which is not done here.
SNAPSHOT_EXPIRE_LIMIT = Option(
    "snapshot.expire.limit", at_least(1), 2**31 - 1, "snapshots removed by one expiry"
)
CONSUMER_EXPIRATION = Option(
    "consumer.expiration-time",
    parse_duration,
    timedelta(0),
    "age at which an idle consumer is dropped; 0: never",
)
COMMIT_MAX_RETRIES = Option(
    "commit.max-retries", at_least(0), 50, "attempts to commit again after another commit came first"
)
COMMIT_TIMEOUT = Option(
    "commit.timeout", parse_duration, timedelta(minutes=10), "time after which a commit gives up"
)
COMMIT_MIN_WAIT = Option(
    "commit.min-retry-wait",
    parse_duration,
    timedelta(milliseconds=10),
    "first wait before a commit is retried",
)
COMMIT_MAX_WAIT = Option(
    "commit.max-retry-wait", parse_duration, timedelta(seconds=10), "longest wait before a commit is retried"
)
ISOLATION = Option(
    "write.isolation-level",
    one_of("snapshot", "serializable"),
    "snapshot",
    "serializable: refuse a statement that read the table if any commit but a compaction came in between",
)

"""The options of lookups; tables can carry them as defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any

from lockgate.errors import OptionError, nearest
from lockgate.framework.options import (
    Option,
    TableOptions,
    at_least,
    one_of,
    parse_bool,
    parse_duration,
    parse_size,
)
from lockgate.lookup.spec.cache_paths import parse_folder
from lockgate.lookup.spec.lookup_partitions import PartitionChoice, parse_partitions
from lockgate.lookup.spec.periods import NO_PERIODS, Periods, parse_periods

CACHE = Option(
    "lookup.cache",
    one_of("auto", "full", "memory", "partial"),
    "auto",
    "store of the cached rows: RocksDB (full), mapped files (memory), memory for the rows asked for "
    "(partial), or the one that suits the size (auto)",
)
STRATEGY = Option(
    "lookup.strategy",
    one_of("auto", "lookup", "spark"),
    "auto",
    "join by the cache (lookup), by Spark on the same snapshot (spark), or by the faster of the two (auto)",
)
CACHE_DIR = Option(
    "lookup.cache-dir",
    parse_folder,
    "",
    "folder of the caches, on a disk of each host, each cache in a folder with mode 0700; `~`: the home "
    "there; default: a private folder below the one for temporary files",
)
CACHE_MEMORY = Option(
    "lookup.cache-max-memory-size",
    parse_size,
    0,
    "memory of each Python worker for blocks it copies; 0: map the files instead",
)
CACHE_DISK = Option(
    "lookup.cache-max-disk-size",
    parse_size,
    0,
    "limit for the disk space of all caches in the folder, checked in advance for all owners of the host "
    "together; 0: no limit",
)
MEMORY_MAX = Option(
    "lookup.memory-max-size",
    parse_size,
    2 << 30,
    "largest cache that `auto` keeps in mapped files; all workers of a host share its pages",
)
PARTIAL_MAX = Option(
    "lookup.partial-max-size",
    parse_size,
    256 << 20,
    "memory of the owner for the keys that a partial cache keeps, with a row or without",
)
REMOTE = Option(
    "lookup.remote",
    parse_bool,
    False,
    "true: ask the query service of the table for rows, instead of reading its files",
)
IN_JVM = Option(
    "lookup.in-jvm",
    parse_bool,
    True,
    "true: look up in mapped files inside the tasks' JVM; false: in Python workers",
)
BOOTSTRAP_PARALLELISM = Option(
    "lookup.bootstrap-parallelism",
    at_least(1),
    4,
    "threads that encode and sort during a full load; at most the number of processors",
)
FILE_RETENTION = Option(
    "lookup.cache-file-retention",
    parse_duration,
    timedelta(hours=1),
    "time that the state of a batch query is kept, and an unused lookup runs (30 s at most if only batch "
    "queries used it)",
)
REFRESH_ASYNC = Option(
    "lookup.refresh.async",
    parse_bool,
    True,
    "true: answer from the newest state already cached; false: wait until the newest snapshot is cached",
)
REFRESH_INTERVAL = Option(
    "lookup.refresh.interval",
    parse_duration,
    timedelta(milliseconds=500),
    "time between checks for a new snapshot; a check reads one or two files of the table's metadata",
)
FULL_LOAD_THRESHOLD = Option(
    "lookup.refresh.full-load-threshold",
    at_least(1),
    2**31 - 1,
    "number of snapshots behind at which the table is reloaded instead of following its changes",
)
PENDING_SNAPSHOTS = Option(
    "lookup.refresh.async.pending-snapshot-count",
    at_least(1),
    2**31 - 1,
    "snapshots that an asynchronous refresh may lag behind; a batch further behind waits for the newest",
)
MAX_STALENESS = Option(
    "lookup.refresh.max-staleness",
    parse_duration,
    timedelta(0),
    "greatest age of the state that may answer a batch; beyond it the batch fails; 0: no limit",
)
BLACKLIST = Option(
    "lookup.refresh.time-periods-blacklist",
    parse_periods,
    NO_PERIODS,
    "periods without refresh: `yyyy-MM-dd HH:mm->yyyy-MM-dd HH:mm`, comma-separated, in the driver's "
    "local time; the first load runs at any time",
)
PIN_RETENTION = Option(
    "lookup.pin-retention",
    parse_duration,
    timedelta(days=7),
    "age at which the pin of a batch is dropped if no living driver renews it; 0: never",
)
UNUSED_RETENTION = Option(
    "lookup.cache-unused-retention",
    parse_duration,
    timedelta(days=7),
    "time after which the next owner in the folder removes an unused cache",
)
SCAN_PARTITIONS = Option(
    "scan.partitions",
    parse_partitions,
    PartitionChoice(),
    "partitions that lookups read: `dt=2024-01-01;dt=2024-01-02`, `max_pt()`, `max_two_pt()`, `dt=max_pt()`",
)
PARTITION_INTERVAL = Option(
    "lookup.dynamic-partition.refresh-interval",
    parse_duration,
    timedelta(0),
    "least time between checks for a new partition of max_pt(); 0: at every snapshot",
)
SHUFFLE = Option(
    "lookup.shuffle",
    parse_bool,
    False,
    "true: shuffle the stream by the table's buckets, so that each task caches its buckets only",
)
RETRY_PREDICATE = Option(
    "lookup.retry-predicate",
    one_of("", "lookup_miss"),
    "",
    "lookup_miss: retry keys without a match on newer states before their rows are sent on",
)
RETRY_STRATEGY = Option(
    "lookup.retry-strategy",
    one_of("fixed_delay"),
    "fixed_delay",
    "wait of a retry: lookup.fixed-delay before each attempt",
)
FIXED_DELAY = Option(
    "lookup.fixed-delay", parse_duration, timedelta(seconds=1), "time before each attempt of a retry"
)
MAX_ATTEMPTS = Option(
    "lookup.max-attempts",
    at_least(1),
    3,
    "attempts of a retry; after the last, the rows are sent on unmatched",
)
TIMEOUT = Option(
    "lookup.timeout",
    parse_duration,
    timedelta(minutes=30),
    "time that a batch waits for the state it needs",
)

ALL: tuple[Option[Any], ...] = (
    CACHE,
    STRATEGY,
    CACHE_DIR,
    CACHE_MEMORY,
    CACHE_DISK,
    MEMORY_MAX,
    PARTIAL_MAX,
    REMOTE,
    IN_JVM,
    BOOTSTRAP_PARALLELISM,
    FILE_RETENTION,
    REFRESH_ASYNC,
    REFRESH_INTERVAL,
    FULL_LOAD_THRESHOLD,
    PENDING_SNAPSHOTS,
    MAX_STALENESS,
    BLACKLIST,
    PIN_RETENTION,
    UNUSED_RETENTION,
    SCAN_PARTITIONS,
    PARTITION_INTERVAL,
    SHUFFLE,
    RETRY_PREDICATE,
    RETRY_STRATEGY,
    FIXED_DELAY,
    MAX_ATTEMPTS,
    TIMEOUT,
)
_KEYS = frozenset(option.key for option in ALL)
# The spelling of Flink's LOOKUP hint and of older versions of Paimon.
_ALIASES = {
    option.key.removeprefix("lookup."): option.key
    for option in (RETRY_PREDICATE, RETRY_STRATEGY, FIXED_DELAY, MAX_ATTEMPTS, SHUFFLE)
} | {"lookup.dynamic-partition": SCAN_PARTITIONS.key}

# Options for waiting on a remote table. A local cache does not use them, but texts written for Flink have
# them.
_NOT_NEEDED: Mapping[str, Callable[[str], object]] = {
    "async": parse_bool,
    "output-mode": one_of("ordered", "allow_unordered"),
    "capacity": at_least(1),
    "timeout": parse_duration,
    "lookup.async": parse_bool,
    "lookup.async-thread-number": at_least(1),
}


@dataclass(frozen=True)
class Retry:
    """The retry of keys without a match: number of attempts, and the delay between them."""

    delay_seconds: float
    attempts: int


@dataclass(frozen=True)
class LookupOptions:
    """The options of one lookup, each a value; times are in seconds, sizes in bytes.

    The fields are named after the options. `pending_snapshots` is None unless it is set, `retry` unless keys
    without a match are tried again.
    """

    cache: str
    strategy: str
    cache_dir: str
    cache_memory: int
    cache_disk: int
    memory_max: int
    partial_max: int
    remote: bool
    in_jvm: bool
    bootstrap_parallelism: int
    file_retention: float
    refresh_async: bool
    refresh_interval: float
    full_load_threshold: int
    pending_snapshots: int | None
    max_staleness: float
    blacklist: Periods
    pin_retention: float
    unused_retention: float
    scan_partitions: PartitionChoice
    partition_interval: float
    shuffle: bool
    retry: Retry | None
    timeout: float


def lookup_options(table: Mapping[str, str], given: Mapping[str, str]) -> LookupOptions:
    """Join a table's own `lookup.*` options with those of one lookup, which win; parsed once for the same.

    Raises OptionError for an unknown key (with the nearest names) or a malformed value.
    """
    own = {key: str(value) for key, value in table.items() if key in _KEYS}
    named = {_ALIASES.get(key, key): str(value) for key, value in given.items()}
    return _parsed(frozenset(own.items()), frozenset(named.items()))


@lru_cache(maxsize=256)
def _parsed(own: frozenset[tuple[str, str]], named: frozenset[tuple[str, str]]) -> LookupOptions:
    options = {option.key: option for option in ALL}
    for key, value in sorted(named):
        if key not in options:
            raise OptionError(f"unknown lookup option {key!r}{nearest(key, options)}")
        options[key].value_of(value)
    joined = TableOptions({**dict(own), **dict(named)}, strict=False)
    retried = bool(joined.get_option(RETRY_PREDICATE))
    return LookupOptions(
        cache=joined.get_option(CACHE),
        strategy=joined.get_option(STRATEGY),
        cache_dir=joined.get_option(CACHE_DIR),
        cache_memory=joined.get_option(CACHE_MEMORY),
        cache_disk=joined.get_option(CACHE_DISK),
        memory_max=joined.get_option(MEMORY_MAX),
        partial_max=joined.get_option(PARTIAL_MAX),
        remote=joined.get_option(REMOTE),
        in_jvm=joined.get_option(IN_JVM),
        bootstrap_parallelism=joined.get_option(BOOTSTRAP_PARALLELISM),
        file_retention=joined.get_option(FILE_RETENTION).total_seconds(),
        refresh_async=joined.get_option(REFRESH_ASYNC),
        refresh_interval=joined.get_option(REFRESH_INTERVAL).total_seconds(),
        full_load_threshold=joined.get_option(FULL_LOAD_THRESHOLD),
        pending_snapshots=joined.get_option(PENDING_SNAPSHOTS) if PENDING_SNAPSHOTS.key in joined else None,
        max_staleness=joined.get_option(MAX_STALENESS).total_seconds(),
        blacklist=joined.get_option(BLACKLIST),
        pin_retention=joined.get_option(PIN_RETENTION).total_seconds(),
        unused_retention=joined.get_option(UNUSED_RETENTION).total_seconds(),
        scan_partitions=joined.get_option(SCAN_PARTITIONS),
        partition_interval=joined.get_option(PARTITION_INTERVAL).total_seconds(),
        shuffle=joined.get_option(SHUFFLE),
        retry=_retry_of(joined) if retried else None,
        timeout=joined.get_option(TIMEOUT).total_seconds(),
    )


def _retry_of(joined: TableOptions) -> Retry:
    return Retry(joined.get_option(FIXED_DELAY).total_seconds(), joined.get_option(MAX_ATTEMPTS))


def hint_options(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a statement's LOOKUP and OPTIONS hints, without those that a cache does not need.

    Raises OptionError for an unknown name, with the nearest ones, or a malformed value.
    """
    names = [*_ALIASES, *_NOT_NEEDED, *(option.key for option in ALL)]
    for key, value in given.items():
        if key not in names:
            raise OptionError(f"unknown option {key!r} of a lookup join{nearest(key, names)}")
        if key in _NOT_NEEDED:
            Option(key, _NOT_NEEDED[key], None, "").value_of(value)
    return {key: value for key, value in given.items() if key not in _NOT_NEEDED}


def option_texts(given: Mapping[str, Any]) -> dict[str, str]:
    """Return options of a call as text, whatever they were given as; raises OptionError for None."""
    for key, value in given.items():
        if value is None:
            raise OptionError(f"option {key!r} has no value: leave it out")
    return {key: str(value) for key, value in given.items()}

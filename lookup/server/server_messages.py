"""Messages between a driver and its cache servers, through pipes and, from executors, the bridge.

`Event` comes from a cache server or a process that stands by; `CacheCommand` goes to it. `snapshot` is the id
of a snapshot, `rows` a number of rows.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict

from lockgate.framework.spark import ErrorJson
from lockgate.lookup.cache.version_info import CacheVersionJson
from lockgate.lookup.spec.lookup_spec import SpecJson

# --- from a process ------------------------------------------------------------------------------


class WaitingEvent(TypedDict):
    """A process stands by: another one owns the cache in the `directory`, which `folder` identifies."""

    event: Literal["waiting"]
    pid: int
    host: str
    folder: str
    directory: str


class LeadingEvent(TypedDict):
    """A process begins to own the cache in the `directory`, which `folder` identifies."""

    event: Literal["leading"]
    pid: int
    host: str
    folder: str
    directory: str


class ReadyEvent(TypedDict):
    """The owner has opened the table; `writer`: it has the lock of the cache."""

    event: Literal["ready"]
    pid: int
    writer: bool


class ProgressEvent(TypedDict):
    """Rows loaded so far, and about how many are expected."""

    event: Literal["progress"]
    rows: int
    expected: int


class BuiltEvent(TypedDict):
    """A state is built."""

    event: Literal["built"]
    snapshot: int
    info: CacheVersionJson


class RemovedEvent(TypedDict):
    """States that nobody needs any more are removed."""

    event: Literal["removed"]
    snapshots: list[int]


class EmptiedEvent(TypedDict):
    """Somebody removed the folder of the cache."""

    event: Literal["emptied"]


class FailedEvent(TypedDict):
    """A state could not be built; null: the table could not be opened."""

    event: Literal["failed"]
    snapshot: int | None
    error: ErrorJson


class WarningEvent(TypedDict):
    """A warning of the owner, by the class of its category."""

    event: Literal["warning"]
    category: str
    message: str


class EndedEvent(TypedDict):
    """A process ended by itself, with the last line of its errors, null where they are in a log."""

    event: Literal["ended"]
    pid: int
    code: int
    stderr: str | None


# --- questions about keys ------------------------------------------------------------------------

# The name, the version and the number of the algorithm of a master key.
KeyVersion: TypeAlias = tuple[str, int, int]


class NamesQuestion(TypedDict):
    """`KeyProvider.key_names`."""

    event: Literal["ask"]
    id: int
    method: Literal["key_names"]


class CurrentQuestion(TypedDict):
    """`KeyProvider.current_key`."""

    event: Literal["ask"]
    id: int
    method: Literal["current_key"]
    name: str


class UsableQuestion(TypedDict):
    """`KeyProvider.usable`."""

    event: Literal["ask"]
    id: int
    method: Literal["usable"]
    name: str


class CreateQuestion(TypedDict):
    """`KeyProvider.create_local_key`."""

    event: Literal["ask"]
    id: int
    method: Literal["create_local_key"]
    key: KeyVersion


class DecryptQuestion(TypedDict):
    """`KeyProvider.decrypt_local_key`; `encrypted` is in base64."""

    event: Literal["ask"]
    id: int
    method: Literal["decrypt_local_key"]
    key: KeyVersion
    encrypted: str


KeyQuestion: TypeAlias = NamesQuestion | CurrentQuestion | UsableQuestion | CreateQuestion | DecryptQuestion


class LocalKeyJson(TypedDict):
    """A local key, open and wrapped, in base64."""

    plain: str
    encrypted: str


# The results of the methods; a local key alone is in base64.
KeyValue: TypeAlias = list[str] | KeyVersion | bool | LocalKeyJson | str


class KeyAnswer(TypedDict):
    """What the provider answered."""

    op: Literal["answer"]
    id: int
    ok: KeyValue


class KeyRefusal(TypedDict):
    """What the provider raised."""

    op: Literal["refuse"]
    id: int
    error: ErrorJson


KeyReply: TypeAlias = KeyAnswer | KeyRefusal

Event: TypeAlias = (
    WaitingEvent
    | LeadingEvent
    | ReadyEvent
    | ProgressEvent
    | BuiltEvent
    | RemovedEvent
    | EmptiedEvent
    | FailedEvent
    | WarningEvent
    | EndedEvent
    | KeyQuestion
)


class MetricsEvent(TypedDict):
    """Gauges of an owner, which its executor shows; they go no further."""

    event: Literal["metrics"]
    lookup: str
    values: dict[str, float]


class StartedEvent(TypedDict):
    """The driver has started an owner of its own."""

    event: Literal["started"]
    pid: int


class GoneEvent(TypedDict):
    """A process will say nothing more: its executor is lost, or it was told to end."""

    event: Literal["gone"]


# The messages for `Hosts`, from processes or from the driver itself.
CacheEvent: TypeAlias = Event | GoneEvent

# --- to a process --------------------------------------------------------------------------------


class OpenCache(TypedDict):
    """The lookup of a process, which is the first that it is told.

    `location` is the folder of the cache as each host finds it, `directory` the folder itself, null where the
    process finds it by `location`. `table_id` and `schema_id` are those that the lookup was planned with.
    """

    op: Literal["open"]
    has_keys: bool
    name: str
    location: str
    directory: str | None
    warehouse: str
    options: dict[str, str]
    spec: SpecJson
    table_id: str
    schema_id: int


class BuildCommand(TypedDict):
    """A state to build; `serve`: batches will get it."""

    op: Literal["build"]
    snapshot: int
    serve: bool


class HoldCommand(TypedDict):
    """The states that a lookup needs, and now and then what it says of itself."""

    op: Literal["hold"]
    name: str
    snapshots: list[int]
    status: dict[str, Any] | None


class CloseCommand(TypedDict):
    """A lookup that ends."""

    op: Literal["close"]
    name: str


CacheCommand: TypeAlias = BuildCommand | HoldCommand | CloseCommand | KeyReply

# --- from the driver to an executor --------------------------------------------------------------


class StartCommand(TypedDict):
    """A process to start for the lookup `name`, by a command line, with its first message."""

    do: Literal["start"]
    name: str
    command: list[str]
    opening: OpenCache


class SayCommand(TypedDict):
    """A message for the process of a lookup."""

    do: Literal["say"]
    name: str
    message: CacheCommand


class StopCommand(TypedDict):
    """A lookup whose process is to end."""

    do: Literal["stop"]
    name: str


Command: TypeAlias = StartCommand | SayCommand | StopCommand


class EventRequest(TypedDict):
    """What a process of an executor says, for the lookup `name`."""

    executor: str
    name: str
    event: Event


class PollRequest(TypedDict):
    """An executor that asks what to do."""

    executor: str


class PollAnswer(TypedDict):
    """What it is to do."""

    commands: list[Command]

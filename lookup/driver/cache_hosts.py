"""Sites of lookup caches: the driver's host, or those of the executors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from lockgate.lookup.server.cache_server_process import LocalCacheServers
from lockgate.lookup.server.server_messages import CacheCommand, CacheEvent, OpenCache

if TYPE_CHECKING:
    from lockgate.framework.keys import KeyProvider
    from lockgate.lookup.cache.directory import CacheDirectory
    from lockgate.lookup.spec.status import LookupStatus

# Receives the messages of the process at the end of a link.
Listener = Callable[[str, CacheEvent], None]


class CacheServers(Protocol):
    """The owners of one lookup's caches, each reached by a link; their messages go to a `Listener`."""

    def send(self, link: str, message: CacheCommand) -> bool:
        """Send a message to one; False if it cannot be reached at the moment."""

    def expected(self) -> bool:
        """Say whether there is an owner, or one is about to start."""

    def rest(self) -> bool:
        """End them until `wake`; False where nobody could see that a task calls for one."""

    def wake(self) -> None:
        """Start them again."""

    def close(self) -> None:
        """End them all."""


class CacheHost(Protocol):
    """Starts the owners of lookups, and shows the status of lookups."""

    # Whether the caches lie on the driver's host, where it can look into them.
    local: bool

    def start(
        self, opening: OpenCache, keys: KeyProvider | None, directory: CacheDirectory, listener: Listener
    ) -> CacheServers:
        """Start the owners of one lookup; `opening` gives the first message to each, by its name."""

    def publish(self, status: LookupStatus) -> None:
        """Show the status of a lookup."""

    def withdraw(self, status: LookupStatus) -> None:
        """Take back what was published: a lookup has ended."""

    def ended(self) -> bool:
        """Say whether the application has ended; its lookups end with it."""


class LocalCacheHost:
    """The driver's own host; nothing is shown anywhere."""

    local = True

    def start(
        self, opening: OpenCache, keys: KeyProvider | None, directory: CacheDirectory, listener: Listener
    ) -> CacheServers:
        """Start one owner as a child of this process."""
        directory.ensure()
        return LocalCacheServers(opening, keys, directory, listener)

    def publish(self, status: LookupStatus) -> None:
        """Do nothing: nobody looks."""

    def withdraw(self, status: LookupStatus) -> None:
        """Do nothing: nobody looks."""

    def ended(self) -> bool:
        """Return False: the process may ask as long as it lives."""
        return False

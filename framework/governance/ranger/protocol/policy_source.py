"""Policies from Ranger's admin: from the cache at once, then by a poll in a thread of its own."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any, NoReturn

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import LockgateError, PolicyError, UnsafePathError
from lockgate.framework.governance.ranger.engine.engine import Engine, Settings
from lockgate.framework.governance.ranger.policies.deltas import updated
from lockgate.framework.governance.ranger.policies.grant_changes import GrantChange
from lockgate.framework.governance.ranger.policies.resource_tags import with_changes
from lockgate.framework.governance.ranger.protocol.admin_client import AdminClient, Content, version_of
from lockgate.framework.governance.ranger.protocol.admin_settings import AdminError, AdminSettings
from lockgate.framework.governance.ranger.protocol.download_cache import PolicyCache

_log = logging.getLogger("lockgate.governance")


@checked_arguments
class AdminPolicies:
    """The engine of the newest policies; close it to end the poll.

    If a download cannot be used (PolicyError), the last good policies stay, with their age.
    """

    def __init__(
        self,
        settings: AdminSettings,
        *,
        engine_settings: Settings | None = None,
        strict: bool = True,
        poll: bool = True,
    ) -> None:
        """Start from the cache, if there is one; with `poll` download in the background."""
        self._settings, self._engine_settings, self._strict = settings, engine_settings, strict
        self._client, self._cache = AdminClient(settings), PolicyCache(settings)
        self._lock, self._refreshing, self._stop = threading.Lock(), threading.Lock(), threading.Event()
        self._first = threading.Event()
        self._downloads: dict[Content, dict[str, Any]] = {}
        # Downloads that are in use, and that the disk did not take.
        self._unsaved: set[Content] = set()
        self._engine: Engine | None = None
        self._confirmed: float | None = None
        self.last_error: str | None = None
        self._start()
        self._thread = (
            threading.Thread(target=self._poll, name="lockgate-policies", daemon=True) if poll else None
        )
        if self._thread is not None:
            self._thread.start()

    def _start(self) -> None:
        kept = {content: found for content in Content if (found := self._cache.load(content))}
        if Content.POLICIES not in kept:
            return
        downloads = {content: each for content, (each, _) in kept.items()}
        try:
            self._engine = self._engine_of(downloads)
        except LockgateError as error:
            self.last_error = str(error)
            return
        self._downloads, self._confirmed = downloads, kept[Content.POLICIES][1]

    def engine(self) -> Engine:
        """Return the engine of the newest policies, waiting for the first ones as long as an answer may take.

        Raises PolicyError if there are none, or if they are older than they may be.
        """
        if self._engine is None and self._thread is not None:
            self._first.wait(self._settings.timeout_seconds)
        with self._lock:
            engine = self._engine
        if engine is None:
            raise PolicyError(
                f"there are no policies of service {self._settings.service!r}: "
                f"{self.last_error or 'none came yet'}"
            )
        limit = self._settings.oldest_seconds
        if limit is not None and self.age_seconds > limit:
            raise PolicyError(f"the policies are {self.age_seconds:.0f} s old, and {limit:.0f} s are allowed")
        return engine

    def grant(self, change: GrantChange) -> None:
        """Have the admin grant, in the name of the grantor, and download what follows; raises AdminError."""
        self._client.change("grant", change.to_ranger())
        self.refresh()

    def revoke(self, change: GrantChange) -> None:
        """Have the admin revoke, and download what follows; raises AdminError."""
        self._client.change("revoke", change.to_ranger())
        self.refresh()

    @property
    def age_seconds(self) -> float:
        """The seconds since the admin last confirmed that these are the newest policies; infinite if it never
        did.
        """
        return float("inf") if self._confirmed is None else max(0.0, time.time() - self._confirmed)

    @property
    def version(self) -> int:
        """The version of the policies in use, -1 for none."""
        return version_of(Content.POLICIES, self._downloads.get(Content.POLICIES))

    def refresh(self) -> None:
        """Download what is new, now; raises AdminError and PolicyError, and leaves the last good policies.

        Policies that the disk does not take are used all the same; `last_error` says so, and the next refresh
        tries again.
        """
        with self._refreshing:
            try:
                self.last_error = self._refresh()
            except (LockgateError, OSError) as error:
                self.last_error = str(error)
                raise
            finally:
                self._first.set()

    def _refresh(self) -> str | None:
        downloads, new = dict(self._downloads), set[Content]()
        for content in Content:
            version = version_of(content, downloads.get(content))
            try:
                found = self._client.download(content, version, self._confirmed or 0)
            except AdminError:
                # Old admins have no tags, users or roles to download, but without policies there is nothing.
                if content is Content.POLICIES or content in downloads:
                    raise
                continue
            if found.is_gone:
                if content is Content.POLICIES:
                    self._forget()
                continue
            if found.document is not None:
                downloads[content] = _merged(content, downloads.get(content, {}), found.document)
                new.add(content)
        return self._take(downloads, new)

    def _take(self, downloads: dict[Content, dict[str, Any]], new: set[Content]) -> str | None:
        """Use downloads, and keep them; return why the disk does not take them."""
        if Content.POLICIES not in downloads:
            raise PolicyError("Ranger's admin sent no policies")
        engine = self._engine_of(downloads) if new or self._engine is None else self._engine
        with self._lock:
            self._engine, self._downloads, self._confirmed = engine, downloads, time.time()
        self._unsaved |= new
        try:
            for content, document in downloads.items():
                # Until it is kept, the older one on the disk is not confirmed either.
                if content not in self._unsaved:
                    self._cache.touch(content)
                    continue
                self._cache.save(content, document)
                self._unsaved.discard(content)
        except (UnsafePathError, OSError) as error:
            text = f"the policies are in use, but {self._settings.cache_folder} does not take them: {error}"
            _log.warning("%s", text)
            return text
        return None

    def _forget(self) -> NoReturn:
        with self._lock:
            self._engine, self._downloads, self._confirmed = None, {}, None
        self._unsaved.clear()
        self._cache.forget()
        raise PolicyError(f"Ranger's admin knows no service {self._settings.service!r}")

    def _engine_of(self, downloads: dict[Content, dict[str, Any]]) -> Engine:
        return Engine(
            downloads[Content.POLICIES],
            roles=downloads.get(Content.ROLES, {}).get("rangerRoles") or (),
            tags=downloads.get(Content.TAGS),
            users=downloads.get(Content.USERS),
            settings=self._engine_settings,
            strict=self._strict,
        )

    def _poll(self) -> None:
        while not self._stop.is_set():
            try:
                self.refresh()
            except Exception as error:  # the next poll may succeed, and nothing else would tell
                _log.warning("policies were not refreshed: %s", error)
            self._stop.wait(self._settings.poll_seconds)

    def close(self) -> None:
        """End the poll."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(self._settings.timeout_seconds)


def _merged(content: Content, base: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    if content is Content.POLICIES:
        return updated(base, document)
    return with_changes(base, document) if content is Content.TAGS else document

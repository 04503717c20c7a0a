"""The warehouses and key providers that the sessions of this process use, by handle."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lockgate.errors import NotFoundError, OptionError, nearest
from lockgate.framework.io import is_s3
from lockgate.framework.keys import KeyProvider, NoKeys, provider_from

if TYPE_CHECKING:
    from lockgate.framework.store.catalog import Catalog

_SESSION_SCHEME = "session:"
_STRICT = "!strict"
_SESSION_OPTIONS = frozenset({"warehouse", "keys"})
_CATALOG_OPTIONS = _SESSION_OPTIONS | {"external-roots"}


class KeyScopes:
    """Key providers by handle: a handle is all of a provider that confs, plans and executors ever see."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._providers: dict[str, KeyProvider] = {}
        self._specs: dict[str, str] = {}

    def register(self, provider: KeyProvider, spec: str | None = None) -> str:
        """Return the handle of `provider`: the same one for one provider, or for one `spec`, every time."""
        with self._lock:
            if spec is not None and spec in self._specs:
                return self._specs[spec]
            for handle, known in self._providers.items():
                if known is provider:
                    return handle
            handle = f"keys-{len(self._providers) + 1}"
            self._providers[handle] = provider
            if spec is not None:
                self._specs[spec] = handle
            return handle

    def provider(self, handle: str) -> KeyProvider:
        """Return the provider behind `handle`, strict or not; NotFoundError if there is none."""
        found = self._providers.get(handle.removesuffix(_STRICT))
        if found is None:
            raise NotFoundError(
                f"no keys are known as {handle!r} in this process: connect again with keys=..."
            )
        return found

    def of_spec(self, spec: str | None) -> KeyProvider:
        """Return the provider that a catalog's conf `keys` names, made once for each text."""
        if spec is not None and spec.startswith(_SESSION_SCHEME):
            return self.provider(spec.removeprefix(_SESSION_SCHEME))
        if not spec:
            return NoKeys()
        if spec not in self._specs:
            self.register(provider_from(spec), spec)
        return self._providers[self._specs[spec]]

    def conf_of(self, keys: KeyProvider) -> str:
        """Return what stands for a provider object in a conf; it means something in this process only."""
        return _SESSION_SCHEME + self.register(keys)


def strict(scope: str) -> str:
    """Return the handle under which a missing key is an error, for reads that decide what is written."""
    return scope + _STRICT


def is_strict(scope: str) -> bool:
    """Tell whether `scope` came from `strict`."""
    return scope.endswith(_STRICT)


@dataclass(frozen=True)
class OpenCatalog:
    """A warehouse as one Spark catalog shows it."""

    handle: str
    name: str
    # May hold secrets of a store.
    options: Mapping[str, str] = field(repr=False)
    catalog: Catalog


class Catalogs:
    """The open catalogs of this process, by handle.

    The handle is the catalog's name, unless two sessions give one name to different warehouses.
    """

    def __init__(self, scopes: KeyScopes) -> None:
        self._lock = threading.RLock()
        self._scopes = scopes
        self._open: dict[str, OpenCatalog] = {}

    def open(
        self,
        name: str,
        options: Mapping[str, str],
        hadoop_confs: Callable[[], Mapping[str, str]] = dict,
    ) -> OpenCatalog:
        """Open the catalog `name` with its confs `warehouse` and `keys`, unless it is open with the same.

        For a warehouse in S3 `hadoop_confs` is asked how it is reached; confs of the catalog go first.
        Raises OptionError for an unknown conf, or if there is no `warehouse`.
        """
        _check_options(name, options)
        wanted = dict(options)
        if is_s3(wanted["warehouse"]):
            wanted = {**hadoop_confs(), **wanted}
        with self._lock:
            for known in self._open.values():
                if known.name == name and known.options == wanted:
                    return known
            handle = name
            while handle in self._open:
                handle = f"{name}#{len(self._open) + 1}"
            opened = OpenCatalog(handle, name, wanted, self._make(wanted))
            self._open[handle] = opened
            return opened

    def _make(self, options: Mapping[str, str]) -> Catalog:
        from lockgate.framework.store.catalog import Catalog

        keys = self._scopes.of_spec(options.get("keys"))
        rest = {key: value for key, value in options.items() if key not in _SESSION_OPTIONS}
        return Catalog(
            options["warehouse"], keys=None if isinstance(keys, NoKeys) else keys, options=rest or None
        )

    def get(self, handle: str) -> Catalog:
        """Return the warehouse behind `handle`; NotFoundError offers the nearest names."""
        found = self._open.get(handle)
        if found is None:
            raise NotFoundError(f"there is no Lockgate catalog {handle!r}{nearest(handle, self._open)}")
        return found.catalog


def _check_options(name: str, options: Mapping[str, str]) -> None:
    if not options.get("warehouse"):
        raise OptionError(
            f"catalog {name!r} has no warehouse: set spark.sql.catalog.{name}.warehouse "
            "to the folder of its tables"
        )
    for key in options:
        if key not in _CATALOG_OPTIONS and not key.startswith("fs."):
            raise OptionError(
                f"catalog {name!r} has an unknown conf spark.sql.catalog.{name}.{key}"
                f"{nearest(key, _CATALOG_OPTIONS)}"
            )

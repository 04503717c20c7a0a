"""The warehouses and key providers that the sessions of this process use, by handle."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lockgate.errors import NotFoundError, OptionError, nearest
from lockgate.framework.io import is_s3
from lockgate.framework.keys import KeyProvider, NoKeys, provider_from
from lockgate.framework.options import CATALOG_OPTIONS
from lockgate.framework.plugins import current_principal, plugins

if TYPE_CHECKING:
    from lockgate.framework.access import Principal
    from lockgate.framework.spark.enforcement.scan_grants import ScanRights
    from lockgate.framework.store import Catalog

_SESSION_SCHEME = "session:"
_STRICT = "!strict"
_SESSION_OPTIONS = frozenset({"warehouse", "keys"})
# One for all, so that it has one handle.
_NO_KEYS = NoKeys()


_MOST_PLANS = 10_000


@dataclass(frozen=True)
class KeyPlan:
    """The keys of a plan: their provider, whose plan it is, the keys it does not get, and by which rights."""

    provider: KeyProvider
    principal: Principal
    withheld: frozenset[str] = frozenset()
    rights: ScanRights | None = None

    @property
    def others(self) -> tuple[Principal, frozenset[str], ScanRights | None]:
        """Return all but the provider, which counts by identity."""
        return self.principal, self.withheld, self.rights


class KeyScopes:
    """Key providers by handle: a handle is all of a provider that confs, plans and executors ever see.

    Nobody can guess one. What stands in a plan (`register`) is not what stands in a conf (`conf_of`): a conf
    gives rights, so it means something only in the sessions that it was given to.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._plans: OrderedDict[str, KeyPlan] = OrderedDict()
        self._specs: dict[str, KeyProvider] = {}
        self._given: dict[str, KeyProvider] = {}
        self._grants: dict[str, set[str]] = {}

    def register(
        self,
        provider: KeyProvider,
        principal: Principal | None = None,
        withheld: frozenset[str] = frozenset(),
        rights: ScanRights | None = None,
    ) -> str:
        """Return the handle of `provider` for plans of `principal`, by default of the current user now.

        It is the same one for one provider, principal and decision every time. Executors name it in their
        questions, which no session asks: it says for whom, which keys are `withheld` from that plan, and by
        which `rights` it reads. Of many handles, the ones unused for longest are forgotten: their plans get
        no more keys.
        """
        plan = KeyPlan(provider, principal or current_principal(), withheld, rights)
        with self._lock:
            for handle, one in self._plans.items():
                if one.provider is provider and one.others == plan.others:
                    self._plans.move_to_end(handle)
                    return handle
            handle = _new_handle()
            self._plans[handle] = plan
            if len(self._plans) > _MOST_PLANS:
                self._plans.popitem(last=False)
            return handle

    def provider(self, handle: str) -> KeyProvider:
        """Return the provider behind a plan's handle, strict or not; NotFoundError if there is none."""
        return self.plan(handle).provider

    def principal(self, handle: str) -> Principal:
        """Return whose plan a handle stands in; NotFoundError as `provider`."""
        return self.plan(handle).principal

    def withheld(self, handle: str) -> frozenset[str]:
        """Return the keys that a plan does not get, whatever it asks; NotFoundError as `provider`."""
        return self.plan(handle).withheld

    def plan(self, handle: str) -> KeyPlan:
        """Return what a handle stands for; NotFoundError as `provider`."""
        handle = handle.removesuffix(_STRICT)
        with self._lock:
            found = self._plans.get(handle)
            if found is None:
                raise NotFoundError(_UNKNOWN)
            self._plans.move_to_end(handle)
        return found

    def of_spec(self, spec: str | None) -> KeyProvider:
        """Return the provider that a catalog's conf `keys` names, made once for each text.

        Whether the session may use it is not looked at here (`catalog_rights`).
        """
        if not spec:
            return _NO_KEYS
        handle = handle_in(spec)
        if handle is not None:
            found = self._given.get(handle)
            if found is None:
                raise NotFoundError(_UNKNOWN)
            return found
        if spec not in self._specs:
            made = provider_from(spec)
            with self._lock:
                self._specs.setdefault(spec, made)
        return self._specs[spec]

    def conf_of(self, keys: KeyProvider) -> str:
        """Return what stands for a provider object in a conf; it means something in this process only."""
        with self._lock:
            return _SESSION_SCHEME + _handle_of(keys, self._given)

    def grant(self, conf: str | None, session: str) -> None:
        """Let the session of this name use what `conf_of` returned; other texts need no grant."""
        handle = handle_in(conf)
        if handle is not None:
            with self._lock:
                self._grants.setdefault(handle, set()).add(session)

    def claim(self, conf: str | None, session: str) -> None:
        """Let a session use what `configure` put into its confs, unless another one was given it."""
        handle = handle_in(conf)
        if handle is not None:
            with self._lock:
                if not self._grants.get(handle):
                    self._grants[handle] = {session}

    def is_granted(self, handle: str, session: str | None) -> bool:
        """Tell whether keys were given to a session."""
        return session in self._grants.get(handle, ())


_UNKNOWN = "the keys that are asked for are not known in this process: connect again with keys=..."


def _handle_of(provider: KeyProvider, providers: dict[str, KeyProvider]) -> str:
    for handle, one in providers.items():
        if one is provider:
            return handle
    handle = _new_handle()
    providers[handle] = provider
    return handle


def _new_handle() -> str:
    return f"keys-{secrets.token_hex(16)}"


def handle_in(conf: str | None) -> str | None:
    """Return the handle in a conf that stands for a provider object, None for any other text."""
    if conf is None or not conf.startswith(_SESSION_SCHEME):
        return None
    return conf.removeprefix(_SESSION_SCHEME)


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
    """The open catalogs of this process, by a handle that nobody can guess.

    Two sessions may give one name to different warehouses, or to one warehouse with other keys.
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
            for opened in self._open.values():
                if opened.name == name and opened.options == wanted:
                    return opened
            handle = f"{name}#{secrets.token_hex(16)}"
            opened = OpenCatalog(handle, name, wanted, self._make(wanted))
            self._open[handle] = opened
            return opened

    def _make(self, options: Mapping[str, str]) -> Catalog:
        from lockgate.framework.store import Catalog

        keys = self._scopes.of_spec(options.get("keys"))
        rest = {key: value for key, value in options.items() if key not in _SESSION_OPTIONS}
        return Catalog(
            options["warehouse"], keys=None if isinstance(keys, NoKeys) else keys, options=rest or None
        )

    def warehouses(self) -> list[str]:
        """Return the folders of the open catalogs."""
        with self._lock:
            return [opened.options["warehouse"] for opened in self._open.values()]

    def get(self, handle: str) -> Catalog:
        """Return the warehouse behind `handle`; NotFoundError offers the nearest names."""
        found = self._open.get(handle)
        if found is None:
            name = handle.partition("#")[0]
            names = {opened.name for opened in self._open.values()}
            raise NotFoundError(
                f"there is no Lockgate catalog {name!r} in this process{nearest(name, names)}"
            )
        return found.catalog


def _check_options(name: str, options: Mapping[str, str]) -> None:
    if not options.get("warehouse"):
        raise OptionError(
            f"catalog {name!r} has no warehouse: set spark.sql.catalog.{name}.warehouse "
            "to the folder of its tables"
        )
    supported = {*(option.key for option in CATALOG_OPTIONS), *plugins().options("catalog")}
    for key in options:
        if key not in supported and not key.startswith("fs."):
            raise OptionError(
                f"catalog {name!r} has an unknown conf spark.sql.catalog.{name}.{key}"
                f"{nearest(key, supported)}"
            )

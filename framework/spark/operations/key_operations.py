"""Operations on keys: executors ask for the local key of one file, never for a master key."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

from lockgate.errors import AccessDeniedError, InputError, KeyDeniedError, KeyMissingError
from lockgate.framework.keys import KeyAlgorithm, KeyMetadata
from lockgate.framework.plugins import KeyUnwrapped, acting_as, current_principal, publish
from lockgate.framework.spark.context.open_catalogs import is_strict
from lockgate.framework.spark.context.operation_context import OperationContext
from lockgate.framework.spark.enforcement.decisions import check_key
from lockgate.framework.spark.messages.key_messages import (
    CreatedKey,
    CreateKeyRequest,
    ScopeRequest,
    UnwrapAnswer,
    UnwrapRequest,
)


def unwrap(context: OperationContext, request: UnwrapRequest) -> UnwrapAnswer:
    """Unwrap the local key of a file.

    A missing or denied master key is an answer, in a strict scope an error; so is a missing version of a key
    that is held. A key is as good as missing if the plan's user needs no value under it: its columns are
    denied, or the masks in the files are those of the policies. Raises AccessDeniedError if policies hide
    more of the table than when the plan was made.
    """
    provider = context.dispatcher.scopes.provider(request["scope"])
    key = KeyMetadata(request["name"], int(request["version"]), _algorithm(request["algorithm"]))
    plan = context.dispatcher.scopes.plan(request["scope"])
    if key.name in plan.withheld:
        _publish(key, granted=False)
        return {"plain": None}
    if plan.rights is not None:
        try:
            check_key(plan.rights, plan.principal, key.name)
        except AccessDeniedError:
            _publish(key, granted=False)
            raise
    try:
        plain = provider.decrypt_local_key(key, base64.b64decode(request["encrypted"]))
    except (KeyMissingError, KeyDeniedError) as error:
        _publish(key, granted=False)
        if is_strict(request["scope"]):
            raise type(error)(
                f"{error}; what is read here decides what is written, and without the key that would be masks"
            ) from None
        if provider.usable(key.name):
            # The table's columns are shown as open, so masks would be taken for values.
            raise
        return {"plain": None}
    _publish(key, granted=True)
    return {"plain": base64.b64encode(plain).decode()}


def _publish(key: KeyMetadata, *, granted: bool) -> None:
    user = current_principal().user
    publish(KeyUnwrapped(user=user, key=key.name, version=key.version, granted=granted))


def create(context: OperationContext, request: CreateKeyRequest) -> CreatedKey:
    """Make a local key for one file under the newest version of a master key, or the one that is asked for.

    A file names one version of each key: if the key is rolled while a file is opened, its other columns stay
    with the version of the first.
    """
    provider = context.dispatcher.scopes.provider(request["scope"])
    key = provider.current_key(request["name"])
    if request["version"] not in (None, key.version):
        key = KeyMetadata(key.name, int(request["version"]), _algorithm(request["algorithm"]))
    local = provider.create_local_key(key)
    return {
        "name": key.name,
        "version": key.version,
        "algorithm": key.algorithm.name,
        "plain": base64.b64encode(local.plain).decode(),
        "encrypted": base64.b64encode(local.encrypted).decode(),
    }


def names(context: OperationContext, request: ScopeRequest) -> list[str]:
    """Return the names of the keys that a scope holds."""
    scopes, scope = context.dispatcher.scopes, request["scope"]
    withheld = scopes.withheld(scope)
    return [name for name in scopes.provider(scope).key_names() if name not in withheld]


def _algorithm(name: object) -> KeyAlgorithm:
    for algorithm in KeyAlgorithm:
        if name in (algorithm.name, algorithm.value):
            return algorithm
    names = ", ".join(algorithm.name for algorithm in KeyAlgorithm)
    raise InputError(f"the cipher {name!r} is not one of ORC's: {names}")


Operation: TypeAlias = Callable[[OperationContext, Any], object]


def _for_its_plan(operation: Operation) -> Operation:
    """Answer for the principal whose plan names the scope: executors ask outside any session."""

    @wraps(operation)
    def answer(context: OperationContext, request: Any) -> object:
        with acting_as(context.dispatcher.scopes.principal(request["scope"])):
            return operation(context, request)

    return answer


OPERATIONS: dict[str, Operation] = {
    "keys.unwrap": _for_its_plan(unwrap),
    "keys.create": _for_its_plan(create),
    "keys.names": _for_its_plan(names),
}

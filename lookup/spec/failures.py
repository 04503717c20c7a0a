"""Errors as they go from one process of a lookup to another: their class and message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate import errors
from lockgate.errors import LockgateError, LookupCacheError

if TYPE_CHECKING:
    from lockgate.framework.spark import ErrorJson


def error_to_json(error: BaseException) -> ErrorJson:
    """Return an error as it goes through the pipe: its class and message."""
    return {"type": type(error).__name__, "message": str(error) or type(error).__name__}


def error_from_json(content: ErrorJson) -> LockgateError:
    """Return the error that the other end met, of the same class if it is one of ours."""
    kind = getattr(errors, content["type"], None)
    if isinstance(kind, type) and issubclass(kind, LockgateError) and kind is not errors.PluginError:
        return kind(content["message"])
    return LookupCacheError(f"{content['type']}: {content['message']}")

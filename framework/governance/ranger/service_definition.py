"""The service definition for warehouses, which Ranger's admin needs to have policies for them."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from lockgate.checked_arguments import checked_arguments

_FILE = "ranger-servicedef-paimon.json"


@checked_arguments
def service_definition() -> dict[str, Any]:
    """Return the definition of the service type `paimon`, in Ranger's JSON."""
    found: dict[str, Any] = json.loads(definition_text())
    return found


def definition_text() -> str:
    """Return the definition as the file that Ranger's admin takes."""
    return files("lockgate.framework.governance.ranger").joinpath(_FILE).read_text("utf-8")

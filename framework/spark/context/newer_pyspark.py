"""What only newer versions of PySpark have, asked for by name where it is used."""

from __future__ import annotations

from typing import Any

from lockgate.errors import UnsupportedError


def since_4_1(owner: object, name: str, purpose: str) -> Any:
    """Return what `owner` has under a name since PySpark 4.1; UnsupportedError says what needs it.

    The overloads of these know fewer types than they take, so nothing is said of the result's.
    """
    import pyspark

    found = getattr(owner, name, None)
    if found is None:
        raise UnsupportedError(
            f"{purpose} needs PySpark 4.1 or newer ({name}), and this is {pyspark.__version__}"
        )
    return found

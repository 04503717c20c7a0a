"""Lookup joins, CALL procedures, push-down and encrypted ORC tables for PySpark.

Start with `connect`. Names are imported when first used: `import lockgate` loads neither pyspark
nor RocksDB.
"""

from typing import TYPE_CHECKING

from lockgate.framework.version import VERSION
from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.framework.keys import KeyFileProvider, KeyProvider, MemoryKeyProvider, create_key_file
    from lockgate.framework.spark import Lake, attach, configure, connect, inspect_sql, jar
    from lockgate.framework.store import Catalog
    from lockgate.lookup import lookup_join

__version__ = VERSION

__all__ = [
    "Catalog",
    "KeyFileProvider",
    "KeyProvider",
    "Lake",
    "MemoryKeyProvider",
    "__version__",
    "attach",
    "configure",
    "connect",
    "create_key_file",
    "inspect_sql",
    "jar",
    "lookup_join",
]

_HOMES = {
    "Catalog": "lockgate.framework.store",
    "KeyFileProvider": "lockgate.framework.keys",
    "KeyProvider": "lockgate.framework.keys",
    "Lake": "lockgate.framework.spark",
    "MemoryKeyProvider": "lockgate.framework.keys",
    "attach": "lockgate.framework.spark",
    "configure": "lockgate.framework.spark",
    "connect": "lockgate.framework.spark",
    "create_key_file": "lockgate.framework.keys",
    "inspect_sql": "lockgate.framework.spark",
    "jar": "lockgate.framework.spark",
    "lookup_join": "lockgate.lookup",
}

__getattr__ = lazy_attributes(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)

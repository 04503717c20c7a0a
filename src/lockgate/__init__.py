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


__getattr__ = lazy_attributes(
    __name__,
    {
        "lockgate.framework.keys": "KeyFileProvider KeyProvider MemoryKeyProvider create_key_file",
        "lockgate.framework.spark": "Lake attach configure connect inspect_sql jar",
        "lockgate.framework.store": "Catalog",
        "lockgate.lookup": "lookup_join",
    },
)


def __dir__() -> list[str]:
    return sorted(__all__)

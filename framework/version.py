"""The versions that must agree across the parts of Lockgate."""

VERSION = "0.1.0"

# Raised whenever an operation of the bridge changes its meaning or its payload.
BRIDGE_PROTOCOL = 3
# Raised whenever the files of a lookup cache change; an older cache is rebuilt. The JVM's `CacheVersions` has
# this number and the next too.
CACHE_FORMAT = 3
# Raised whenever the encoding of rows or keys inside a lookup cache changes.
ROW_CODEC = 1

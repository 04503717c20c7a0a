"""The process that owns the caches of a host, and the pipe to it."""

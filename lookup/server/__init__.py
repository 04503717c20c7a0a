"""The process that keeps the caches of a host, and the pipe to it."""

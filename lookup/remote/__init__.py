"""Query services: partial caches that other processes and hosts ask, by Arrow Flight."""

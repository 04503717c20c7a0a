"""Matching of resources: whether a policy's resource covers the one of a request."""

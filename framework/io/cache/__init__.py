"""Ranges of remote files on a local disk."""

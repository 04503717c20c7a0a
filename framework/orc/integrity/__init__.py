"""Integrity tags, which reveal changes to the bytes of an encrypted ORC file."""

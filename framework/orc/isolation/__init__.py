"""Decoding in a separate process, so that a damaged file cannot crash this one."""

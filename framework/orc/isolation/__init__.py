"""Decoding in a process of its own, so that a damaged file harms nothing else."""

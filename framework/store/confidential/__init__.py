"""Encrypted columns of a table: which they are, who sees them, and where their values lie in the clear."""

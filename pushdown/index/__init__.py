"""Indexes as bytes: file indexes as Paimon writes them, and segments of the index database."""

"""Governance: who may see what, decided in Python by policies."""

__all__: list[str] = []

"""Statements that define tables: schemas checked, created and altered."""

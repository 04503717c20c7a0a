"""Checks of changes and writes before they happen, by recorded lineage."""

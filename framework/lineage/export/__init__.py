"""Lineage for other tools: pictures, graphs, events and entities."""

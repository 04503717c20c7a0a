"""Lineage as others want it: pictures, graphs, events and entities."""

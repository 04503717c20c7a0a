"""Warehouses and tables, as everything above the store uses them."""

"""Segments of records in the warehouse, and the local index that is made from them."""

"""Keys and rows of a cache as bytes, sealed where the table is encrypted."""

"""Sessions: making one, attaching to one, and the lake that it has."""

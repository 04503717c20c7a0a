"""Envelopes: master keys in the table's option, wrapped under a root key stored elsewhere."""

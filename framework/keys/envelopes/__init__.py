"""Envelopes: master keys stored with the data, wrapped under a key kept elsewhere."""

"""Streams: queries that follow a table, from a state of it or from a snapshot on."""

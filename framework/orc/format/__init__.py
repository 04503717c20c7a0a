"""The ORC file format: tails, stripes, streams, statistics and types."""

"""The ORC format: tails, stripes, streams, statistics and types as they are written."""

"""The driver's side of lookups: the choice of snapshots, targets of owners, pins of batches, progress."""

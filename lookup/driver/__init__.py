"""The driver's side of lookups: snapshots chosen, owners told, batches pinned, progress reported."""

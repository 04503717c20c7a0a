"""The procedures that come with Lockgate: one module for each, or for a few similar ones."""

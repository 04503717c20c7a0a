"""Commits: messages of written files, conflicts, participants, and the new snapshot."""

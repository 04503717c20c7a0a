"""Options: their mechanism, and the options of tables."""

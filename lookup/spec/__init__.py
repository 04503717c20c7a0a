"""The specification of one lookup: table, columns, condition, options and partitions."""

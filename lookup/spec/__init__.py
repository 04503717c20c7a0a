"""What one lookup asks for: table, columns, condition, options and partitions."""

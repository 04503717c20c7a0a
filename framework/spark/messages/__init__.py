"""The messages of the bridge: the arguments and the answer of each operation."""

"""The messages of the bridge: what each operation is asked, and what it answers."""

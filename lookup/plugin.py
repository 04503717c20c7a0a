"""What lookup adds to Lockgate."""

"""What an operation may use: open catalogs, sessions of the JVM, and its context."""

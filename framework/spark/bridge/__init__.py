"""The private connection between the connector in the JVM and the driver's Python."""

"""The parts that all of Lockgate stands on, from data types to the connector."""

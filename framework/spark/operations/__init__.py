"""The operations that the connector may ask for, one module a subject."""

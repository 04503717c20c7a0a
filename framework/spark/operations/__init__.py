"""The operations that the connector may request, one module per subject."""

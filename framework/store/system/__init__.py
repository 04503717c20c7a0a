"""System tables: the metadata of a table or of a warehouse, as rows with Paimon's columns."""

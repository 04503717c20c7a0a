"""System tables: what is known of a table or of a warehouse, as rows with Paimon's columns."""

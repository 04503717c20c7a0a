"""The join: its plan in Spark, and the answers that tasks give."""

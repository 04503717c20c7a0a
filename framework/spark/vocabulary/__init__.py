"""Classes of plan nodes and of session settings in Spark, as they are judged here."""

"""The command `lockgate`: keys, ORC files, tables and procedures from the shell, without Spark."""

"""Data files as columns, whatever their format: ORC, Parquet or Avro, as the end of a file's name says."""

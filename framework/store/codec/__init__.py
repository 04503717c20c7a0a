"""Encodings inside metadata files: Avro, BinaryRow, statistics of columns, file indexes of other engines."""

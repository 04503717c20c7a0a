"""Audit: decisions as JSON lines in Ranger's fields, for files, object stores, HDFS, Solr and plugins."""

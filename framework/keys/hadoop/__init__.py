"""Hadoop's homes of master keys: its KMS, and the JCEKS key stores behind it."""

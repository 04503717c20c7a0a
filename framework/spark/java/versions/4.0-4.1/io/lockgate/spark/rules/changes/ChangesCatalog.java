package io.lockgate.spark.rules.changes;

import org.apache.spark.sql.connector.catalog.TableCatalog;

/** A catalog whose tables can be asked for their changes; Spark asks since 4.2. */
public abstract class ChangesCatalog implements TableCatalog {}

package io.lockgate.spark.catalog;

import io.lockgate.spark.rules.changes.ChangesCatalog;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;

/** A catalog that makes tables; Spark describes them by loose parts before 4.1. */
@SuppressWarnings("deprecation") // Spark's own defaults lead here
public abstract class DefinedTables extends ChangesCatalog implements StagingTableCatalog {
  protected abstract Table create(
      Identifier identifier,
      StructType schema,
      Transform[] partitions,
      Map<String, String> properties);

  protected abstract Table createLike(
      Identifier identifier,
      StructType schema,
      Transform[] partitions,
      Map<String, String> properties,
      Table source);

  protected abstract StagedTable stage(
      Identifier identifier,
      StructType schema,
      Transform[] partitions,
      Map<String, String> properties,
      boolean mayCreate,
      boolean mayReplace);

  @Override
  public StagedTable stageCreate(
      Identifier identifier, StructType schema, Transform[] parts, Map<String, String> properties) {
    return stage(identifier, schema, parts, properties, true, false);
  }

  @Override
  public StagedTable stageReplace(
      Identifier identifier, StructType schema, Transform[] parts, Map<String, String> properties) {
    return stage(identifier, schema, parts, properties, false, true);
  }

  @Override
  public StagedTable stageCreateOrReplace(
      Identifier identifier, StructType schema, Transform[] parts, Map<String, String> properties) {
    return stage(identifier, schema, parts, properties, true, true);
  }
}

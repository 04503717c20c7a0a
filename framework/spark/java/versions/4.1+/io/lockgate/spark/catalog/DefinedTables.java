package io.lockgate.spark.catalog;

import io.lockgate.spark.rules.changes.ChangesCatalog;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;

/** A catalog that makes tables; Spark describes them by a {@code TableInfo} since 4.1. */
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
  public Table createTable(Identifier identifier, TableInfo info) {
    return create(identifier, info.schema(), info.partitions(), info.properties());
  }

  /** CREATE TABLE ... LIKE, for which Spark before 4.3 calls no catalog. */
  public Table createTableLike(Identifier identifier, TableInfo info, Table source) {
    return createLike(identifier, info.schema(), info.partitions(), info.properties(), source);
  }

  @Override
  public StagedTable stageCreate(Identifier identifier, TableInfo info) {
    return stage(identifier, info, true, false);
  }

  @Override
  public StagedTable stageReplace(Identifier identifier, TableInfo info) {
    return stage(identifier, info, false, true);
  }

  @Override
  public StagedTable stageCreateOrReplace(Identifier identifier, TableInfo info) {
    return stage(identifier, info, true, true);
  }

  private StagedTable stage(
      Identifier identifier, TableInfo info, boolean mayCreate, boolean mayReplace) {
    return stage(
        identifier, info.schema(), info.partitions(), info.properties(), mayCreate, mayReplace);
  }
}

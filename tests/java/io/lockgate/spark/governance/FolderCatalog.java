package io.lockgate.spark.governance;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetTable;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A catalog of somebody else, whose tables are folders of Parquet files. Spark reads them by its
 * newer interface, which takes filters, columns, limits and aggregates.
 */
public final class FolderCatalog implements TableCatalog {
  private String name;
  private String folder;

  @Override
  public void initialize(String given, CaseInsensitiveStringMap options) {
    name = given;
    folder = options.get("folder");
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public Table loadTable(Identifier ident) throws NoSuchTableException {
    Path rows = Path.of(folder, ident.name());
    if (!Files.isDirectory(rows)) {
      throw new NoSuchTableException(ident);
    }
    return new ParquetTable(
        ident.name(),
        SparkSession.active(),
        CaseInsensitiveStringMap.empty(),
        CollectionConverters.asScala(List.of(rows.toString())).toSeq(),
        Option.empty(),
        ParquetFileFormat.class);
  }

  @Override
  public Identifier[] listTables(String[] namespace) {
    return new Identifier[0];
  }

  @Override
  public Table alterTable(Identifier ident, TableChange... changes) {
    throw new UnsupportedOperationException("a folder is not altered");
  }

  @Override
  public boolean dropTable(Identifier ident) {
    return false;
  }

  @Override
  public void renameTable(Identifier from, Identifier to) {
    throw new UnsupportedOperationException("a folder is not renamed");
  }
}

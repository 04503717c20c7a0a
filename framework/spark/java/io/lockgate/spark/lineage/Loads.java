package io.lockgate.spark.lineage;

import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.command.LoadDataCommand;
import org.apache.spark.sql.types.StructField;
import scala.Option;

/** LOAD DATA: files become a part of a table as they are, column for column. */
final class Loads {
  private Loads() {}

  static Statement of(LoadDataCommand load) {
    return new Statement(
        "LOAD",
        Datasets.named(load.table()),
        null,
        columns(load.table()),
        false,
        Datasets.path(load.path()));
  }

  /** The columns of the table; none if it is gone by now. */
  private static List<String> columns(TableIdentifier table) {
    Option<SparkSession> session = SparkSession.getActiveSession();
    if (session.isEmpty()) {
      return List.of();
    }
    SessionCatalog catalog = session.get().sessionState().catalog();
    try {
      StructField[] fields = catalog.getTableMetadata(table).schema().fields();
      return Arrays.stream(fields).map(StructField::name).toList();
    } catch (NoSuchNamespaceException | NoSuchTableException gone) {
      return List.of();
    }
  }
}

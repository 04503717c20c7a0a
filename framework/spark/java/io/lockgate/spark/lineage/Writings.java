package io.lockgate.spark.lineage;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.command.DataWritingCommand;
import org.apache.spark.sql.execution.command.LoadDataCommand;
import org.apache.spark.sql.types.StructField;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Commands that write rows and are not known by their class, such as Hive's: what they say of
 * themselves tells where the rows go. And LOAD DATA, which moves whole files.
 */
final class Writings {
  private Writings() {}

  /** The statement of a command; null if it hands no rows on. */
  static Statement of(LogicalPlan command) {
    LogicalPlan query = query(command);
    if (query == null) {
      return null;
    }
    List<Object> arguments = arguments(command);
    ObjectNode table = null;
    ObjectNode folder = null;
    for (Object each : arguments) {
      if (each instanceof CatalogTable found) {
        table = Datasets.named(found.identifier());
      } else if (each instanceof CatalogStorageFormat found) {
        folder = Datasets.folder(found);
      }
    }
    String name = command.getClass().getSimpleName();
    ObjectNode other = folder != null ? folder : Datasets.path(name).put("type", "sink");
    return new Statement(
        table == null ? "EXPORT" : kind(name, arguments),
        table == null ? other : table,
        query,
        columns(command, query),
        false);
  }

  /** The rows that a command hands on; one of Hive's runs another command that writes them. */
  private static LogicalPlan query(LogicalPlan command) {
    if (command instanceof DataWritingCommand writing) {
      return writing.query();
    }
    boolean creates = command.getClass().getSimpleName().equals("CreateHiveTableAsSelectCommand");
    for (Object each : creates ? arguments(command) : List.of()) {
      if (each instanceof LogicalPlan query) {
        return query;
      }
    }
    return null;
  }

  private static List<String> columns(LogicalPlan command, LogicalPlan query) {
    return command instanceof DataWritingCommand writing
        ? CollectionConverters.asJava(writing.outputColumnNames())
        : CollectionConverters.asJava(query.output()).stream().map(Attribute::name).toList();
  }

  private static List<Object> arguments(LogicalPlan command) {
    List<Object> out = new ArrayList<>();
    CollectionConverters.asJava(command.productIterator()).forEachRemaining(out::add);
    return out;
  }

  /** Of a command that writes into a table: it has one flag that is set, if it overwrites. */
  private static String kind(String name, List<Object> arguments) {
    if (name.startsWith("Create")) {
      return "CREATE_TABLE_AS_SELECT";
    }
    return arguments.contains(true) ? "INSERT_OVERWRITE" : "INSERT";
  }

  /** LOAD DATA: files become a part of a table as they are, column for column. */
  static Statement load(LoadDataCommand load) {
    return new Statement(
        "LOAD",
        Datasets.named(load.table()),
        null,
        columnsOf(load.table()),
        false,
        Datasets.path(load.path()));
  }

  /** The columns of the table; none if it is gone by now. */
  private static List<String> columnsOf(TableIdentifier table) {
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

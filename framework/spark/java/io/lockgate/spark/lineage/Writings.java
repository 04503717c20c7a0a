package io.lockgate.spark.lineage;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.execution.command.DataWritingCommand;
import scala.Product;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Commands that write rows and are not known by their class, such as Hive's: what they say of
 * themselves tells where the rows go.
 */
final class Writings {
  private Writings() {}

  static Statement of(DataWritingCommand command) {
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
        command.query(),
        CollectionConverters.asJava(command.outputColumnNames()),
        false);
  }

  private static List<Object> arguments(DataWritingCommand command) {
    List<Object> out = new ArrayList<>();
    if (command instanceof Product product) {
      CollectionConverters.asJava(product.productIterator()).forEachRemaining(out::add);
    }
    return out;
  }

  /** Of a command that writes into a table: it has one flag that is set, if it overwrites. */
  private static String kind(String name, List<Object> arguments) {
    if (name.startsWith("Create")) {
      return "CREATE_TABLE_AS_SELECT";
    }
    return arguments.contains(true) ? "INSERT_OVERWRITE" : "INSERT";
  }
}

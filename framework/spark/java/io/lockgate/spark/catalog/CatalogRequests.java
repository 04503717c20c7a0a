package io.lockgate.spark.catalog;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.PythonSide;
import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.messages.Definition;
import io.lockgate.spark.messages.NamespaceRequest;
import io.lockgate.spark.messages.OpenRequest;
import io.lockgate.spark.messages.Operations;
import io.lockgate.spark.messages.TableRequest;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Tuple2;

/** The requests of one catalog to Python: to open it, and about its namespaces and tables. */
public final class CatalogRequests {
  private final String name;
  private final OpenRequest opening;
  private String handle;
  private PythonSide openedBy;

  /** Opens a catalog by the confs of a session. */
  public CatalogRequests(String name, CaseInsensitiveStringMap options, SparkConf start) {
    this.name = name;
    boolean isFixed = start.getBoolean("spark.lockgate.fixed-catalogs", false);
    this.opening =
        new OpenRequest(name, options.asCaseSensitiveMap(), started(name, start), isFixed);
    handle();
  }

  /**
   * The name by which Python finds this catalog, for two sessions may give one name to two
   * warehouses. A Python that was started again opens it first.
   */
  public synchronized String handle() {
    if (!Bridge.isAnsweredBy(openedBy)) {
      handle = Bridge.ask(Operations.CATALOG_OPEN, opening).handle();
      openedBy = Bridge.python();
    }
    return handle;
  }

  /**
   * The confs of this catalog that the application started with, which a session cannot change;
   * null without any.
   */
  private static Map<String, String> started(String name, SparkConf start) {
    String prefix = "spark.sql.catalog." + name;
    if (!start.contains(prefix)) {
      return null;
    }
    Map<String, String> started = new LinkedHashMap<>();
    for (Tuple2<String, String> conf : start.getAllWithPrefix(prefix + ".")) {
      started.put(conf._1(), conf._2());
    }
    return started;
  }

  /** A request about a namespace. */
  public NamespaceRequest in(String[] namespace) {
    return new NamespaceRequest(handle(), name, List.of(namespace));
  }

  /** A request about a table. */
  public TableRequest at(Identifier identifier) {
    return new TableRequest(
        in(identifier.namespace()), identifier.name(), Map.of(), List.of(), null, null, null);
  }

  /** A request to make a table. */
  public Definition definition(
      Identifier identifier,
      StructType schema,
      Transform[] partitioning,
      Map<String, String> properties) {
    for (StructField field : schema.fields()) {
      Values.storedTypeToJson(field.name(), field.dataType());
    }
    return new Definition(
        at(identifier),
        Values.typeToJson(schema),
        properties,
        Arrays.stream(partitioning).map(CatalogRequests::partitionColumn).toList(),
        Callers.nameDefaultFormat());
  }

  private static String partitionColumn(Transform transform) {
    NamedReference[] references = transform.references();
    if (!transform.name().equals("identity")
        || references.length != 1
        || references[0].fieldNames().length != 1) {
      throw Bridge.failure(
          "Partitioning by "
              + transform.describe()
              + " is not supported: partition by top-level columns, and set "
              + "TBLPROPERTIES('bucket'='<count>', 'bucket-key'='<columns>') for buckets");
    }
    return references[0].fieldNames()[0];
  }
}

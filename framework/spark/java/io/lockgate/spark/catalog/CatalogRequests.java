package io.lockgate.spark.catalog;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.PythonSide;
import io.lockgate.spark.bridge.Values;
import java.util.HashMap;
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
  private final ObjectNode opening;
  private String handle;
  private PythonSide openedBy;

  /** Opens a catalog by the confs of a session. */
  public CatalogRequests(String name, CaseInsensitiveStringMap options, SparkConf start) {
    this.name = name;
    this.opening = Bridge.object().put("catalog", name);
    opening.set("options", Bridge.JSON.valueToTree(options.asCaseSensitiveMap()));
    putStart(opening, name, start);
    handle();
  }

  /**
   * The name by which Python finds this catalog, for two sessions may give one name to two
   * warehouses. A Python that was started again opens it first.
   */
  public synchronized String handle() {
    if (!Bridge.isAnsweredBy(openedBy)) {
      handle = Bridge.ask("catalog.open", opening).get("handle").asText();
      openedBy = Bridge.python();
    }
    return handle;
  }

  /**
   * The confs that the application started with, which a session cannot change: those of this
   * catalog, and whether they are fixed.
   */
  private static void putStart(ObjectNode request, String name, SparkConf start) {
    String prefix = "spark.sql.catalog." + name;
    request.putNull("started");
    if (start.contains(prefix)) {
      ObjectNode started = request.putObject("started");
      for (Tuple2<String, String> conf : start.getAllWithPrefix(prefix + ".")) {
        started.put(conf._1(), conf._2());
      }
    }
    request.put("fixed", start.getBoolean("spark.lockgate.fixed-catalogs", false));
  }

  /** A request about a namespace. */
  public ObjectNode in(String[] namespace) {
    ObjectNode request = Bridge.object().put("catalog", handle()).put("catalog_name", name);
    request.set("namespace", Bridge.JSON.valueToTree(namespace));
    return request;
  }

  /** A request about a table, to be completed. */
  public ObjectNode at(Identifier identifier) {
    ObjectNode request = in(identifier.namespace()).put("name", identifier.name());
    request.putObject("options");
    request.putArray("privileges");
    return request.putNull("table_id").putNull("schema_id").putNull("replacement");
  }

  /** A request to make a table. */
  public ObjectNode definition(
      Identifier identifier,
      StructType schema,
      Transform[] partitioning,
      Map<String, String> properties) {
    ObjectNode request = at(identifier);
    for (StructField field : schema.fields()) {
      Values.storedTypeToJson(field.name(), field.dataType());
    }
    request.set("schema", Values.typeToJson(schema));
    request.set("properties", Bridge.JSON.valueToTree(new HashMap<>(properties)));
    request.put("default_format", Callers.nameDefaultFormat());
    ArrayNode columns = request.putArray("partitioning");
    for (Transform transform : partitioning) {
      columns.add(partitionColumn(transform));
    }
    return request;
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

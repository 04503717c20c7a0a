package io.lockgate.spark.index;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Values;
import java.io.IOException;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;

/** Runs the vectors of keys that tasks collect for the index database. */
public final class KeyTwins {
  private KeyTwins() {}

  /**
   * The bytes of the keys of each case of a vector, in base64, as a JSON array. A case has a Spark
   * type, rows, the rows of a block, and the names of a kind of index and of its values.
   */
  public static String keys(String vector) throws IOException {
    ArrayNode found = Bridge.JSON.createArrayNode();
    for (JsonNode each : Bridge.JSON.readTree(vector)) {
      DataType type = DataType.fromJson(each.get("spark").toString());
      ObjectNode asked = Bridge.JSON.createObjectNode().put("folder", "").put("inline_bytes", 0);
      asked.set("block_rows", each.get("block_rows"));
      asked
          .putArray("columns")
          .addObject()
          .put("column", "v")
          .put("kind", each.get("kind").asText())
          .put("values", each.get("values").asText());
      KeyCollector collector = KeyPlan.of(asked, List.of("v"), List.of(type), 1).collector();
      for (JsonNode value : each.get("rows")) {
        collector.add(new GenericInternalRow(new Object[] {Values.fromJson(value, type)}), 0);
      }
      found.add(collector.finish());
    }
    return found.toString();
  }
}

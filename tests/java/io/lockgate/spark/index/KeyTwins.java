package io.lockgate.spark.index;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.messages.IndexKeyColumn;
import io.lockgate.spark.messages.IndexKeys;
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
      IndexKeyColumn column =
          new IndexKeyColumn("v", each.get("kind").asText(), each.get("values").asText());
      IndexKeys asked = new IndexKeys("", each.get("block_rows").asLong(), 0, List.of(column));
      KeyCollector collector = KeyPlan.of(asked, List.of("v"), List.of(type), 1).collector();
      for (JsonNode value : each.get("rows")) {
        collector.add(new GenericInternalRow(new Object[] {Values.fromJson(value, type)}), 0);
      }
      found.add(collector.finish());
    }
    return found.toString();
  }
}

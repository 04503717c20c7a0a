package io.lockgate.spark.lookup;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.merge.Conformance;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;

/**
 * Runs the vectors of row codec and key encoder; a vector's columns have a Spark type and a kind of
 * {@link RowShape}.
 */
public final class LookupTwins {
  private LookupTwins() {}

  /** The rows behind the bytes of a vector, as a JSON array of arrays. */
  public static String decode(String vector) throws IOException {
    JsonNode root = Bridge.JSON.readTree(vector);
    StructType type = type(root.get("columns"));
    int[] all = new int[type.length()];
    for (int i = 0; i < all.length; i++) {
      all[i] = i;
    }
    RowDecoder decoder = new RowDecoder(shape(root.get("columns")), all, type);
    ArrayNode rows = Bridge.JSON.createArrayNode();
    for (JsonNode text : root.get("bytes")) {
      byte[] bytes = HexFormat.of().parseHex(text.asText());
      Conformance.add(rows, decoder.row(bytes, Platform.BYTE_ARRAY_OFFSET), type);
    }
    return rows.toString();
  }

  /** The bytes of the keys of a vector, in hexadecimal; null where a part of the key is null. */
  public static String keys(String vector) throws IOException {
    JsonNode root = Bridge.JSON.readTree(vector);
    StructType type = type(root.get("columns"));
    List<DataType> types = new ArrayList<>();
    for (int i = 0; i < type.length(); i++) {
      types.add(type.apply(i).dataType());
    }
    KeyEncoder encoder =
        new KeyEncoder(shape(root.get("columns")), types.toArray(DataType[]::new), 0);
    ArrayNode keys = Bridge.JSON.createArrayNode();
    for (InternalRow row : Conformance.rows(root.get("rows"), types)) {
      keys.add(encoder.encode(row) ? HexFormat.of().formatHex(encoder.toBytes()) : null);
    }
    return keys.toString();
  }

  private static StructType type(JsonNode columns) {
    StructType type = new StructType();
    for (JsonNode column : columns) {
      type =
          type.add(column.get("name").asText(), DataType.fromJson(column.get("spark").toString()));
    }
    return type;
  }

  private static RowShape shape(JsonNode columns) {
    ArrayNode kinds = Bridge.JSON.createArrayNode();
    columns.forEach(column -> kinds.add(column.get("kind")));
    return new RowShape(kinds);
  }
}

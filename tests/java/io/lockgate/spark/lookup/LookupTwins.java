package io.lockgate.spark.lookup;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.merge.Conformance;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.spark.SparkRuntimeException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;

/**
 * Runs the vectors of row codec and key encoder; a vector's columns have a Spark type and a kind of
 * {@link RowShape}.
 */
public final class LookupTwins {
  private LookupTwins() {}

  /** The versions that this JVM reads, as a JSON object. */
  public static String versions() {
    return Bridge.JSON
        .createObjectNode()
        .put("cache_format", CacheVersions.CACHE_FORMAT)
        .put("row_codec", CacheVersions.ROW_CODEC)
        .toString();
  }

  /**
   * The folder of each case of a vector, which has a place and an environment, as a JSON array of
   * objects with it or the error.
   */
  public static String folders(String vector) throws IOException {
    ArrayNode folders = Bridge.JSON.createArrayNode();
    for (JsonNode each : Bridge.JSON.readTree(vector)) {
      Map<String, String> environment = new HashMap<>();
      each.get("environment")
          .properties()
          .forEach(entry -> environment.put(entry.getKey(), entry.getValue().asText()));
      try {
        String folder = CachePaths.local(each.get("location").asText(), environment).toString();
        folders.addObject().put("folder", folder);
      } catch (SparkRuntimeException refused) {
        folders.addObject().put("error", refused.getMessageParameters().get("errorMessage"));
      }
    }
    return folders.toString();
  }

  /** The rows behind the bytes of a vector, as a JSON array of arrays. */
  public static String decode(String vector) throws IOException {
    JsonNode root = ofThisVersion(vector);
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
    JsonNode root = ofThisVersion(vector);
    StructType type = type(root.get("columns"));
    List<DataType> types = new ArrayList<>();
    for (int i = 0; i < type.length(); i++) {
      types.add(type.apply(i).dataType());
    }
    KeyEncoder encoder = new KeyEncoder(shape(root.get("columns")), types.toArray(DataType[]::new));
    ArrayNode keys = Bridge.JSON.createArrayNode();
    for (InternalRow row : Conformance.rows(root.get("rows"), types)) {
      keys.add(encoder.encode(row) ? HexFormat.of().formatHex(encoder.toBytes()) : null);
    }
    return keys.toString();
  }

  /**
   * The rows under each key that a vector asks for, in the layers in {@code folder}: a JSON array
   * of arrays of arrays, with null where there are none.
   */
  public static String layers(String vector, String folder) throws IOException {
    JsonNode root = ofThisVersion(vector);
    StructType type = type(root.get("columns"));
    int[] all = IntStream.range(0, type.length()).toArray();
    RowDecoder decoder = new RowDecoder(shape(root.get("columns")), all, type);
    List<DataType> types =
        Arrays.stream(type(root.get("keys")).fields()).map(StructField::dataType).toList();
    KeyEncoder key = new KeyEncoder(shape(root.get("keys")), types.toArray(DataType[]::new));
    ArrayNode found = Bridge.JSON.createArrayNode();
    Value value = new Value();
    try (MappedState state = new MappedState(Path.of(folder))) {
      for (InternalRow row : Conformance.rows(root.get("asked"), types)) {
        if (!key.encode(row) || !state.find(key, value)) {
          found.addNull();
          continue;
        }
        ArrayNode rows = found.addArray();
        for (Object each : decoder.rows(value).array()) {
          Conformance.add(rows, (InternalRow) each, type);
        }
      }
    }
    return found.toString();
  }

  private static JsonNode ofThisVersion(String vector) throws IOException {
    JsonNode root = Bridge.JSON.readTree(vector);
    if (root.get("version").asInt() != CacheVersions.ROW_CODEC) {
      throw new IllegalArgumentException("the vector has version " + root.get("version"));
    }
    return root;
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

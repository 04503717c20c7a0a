package io.lockgate.spark.files;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.merge.Conformance;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.orc.TypeDescription;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/** Runs the vectors of buckets and of the types in ORC files. */
public final class FileTwins {
  private FileTwins() {}

  /**
   * The hashes of the rows of each case of a vector, which has Spark types, and their buckets among
   * {@code buckets}, as a JSON array of objects.
   */
  public static String buckets(String vector, int buckets) throws IOException {
    ArrayNode found = Bridge.JSON.createArrayNode();
    for (JsonNode each : Bridge.JSON.readTree(vector)) {
      List<DataType> types = new ArrayList<>();
      each.get("spark").forEach(type -> types.add(DataType.fromJson(type.toString())));
      int[] all = IntStream.range(0, types.size()).toArray();
      BucketHash hash = new BucketHash(all, types.toArray(DataType[]::new));
      ObjectNode out = found.addObject();
      ArrayNode hashes = out.putArray("hashes");
      ArrayNode places = out.putArray("buckets");
      for (InternalRow row : Conformance.rows(each.get("rows"), types)) {
        hashes.add(hash.hash(row));
        places.add(hash.bucket(row, buckets));
      }
    }
    return found.toString();
  }

  /**
   * The types in an ORC file of each case of a vector, which has a Spark type with field ids inside
   * and the id of the column, as a JSON array of arrays: a type and those inside it, in the order
   * of their numbers, each with its field id if it has one.
   */
  public static String types(String vector) throws IOException {
    ArrayNode found = Bridge.JSON.createArrayNode();
    for (JsonNode each : Bridge.JSON.readTree(vector)) {
      DataType type = DataType.fromJson(each.get("spark").toString());
      spell(OrcTypes.toOrc(type, each.get("id").asInt()), found.addArray());
    }
    return found.toString();
  }

  /**
   * Timestamps, in microseconds, as they come back from an ORC vector that they were put into; null
   * for those that are refused.
   */
  public static String times(String micros) throws IOException {
    ArrayNode found = Bridge.JSON.createArrayNode();
    TypeDescription schema =
        TypeDescription.createStruct().addField("c", OrcTypes.toOrc(DataTypes.TimestampNTZType));
    Columns columns =
        Columns.map(
            schema, List.of(new Columns.Wanted("c", null, DataTypes.TimestampNTZType)), null);
    FieldWriters.ValueWriter writer = FieldWriters.of(DataTypes.TimestampNTZType);
    for (JsonNode each : Bridge.JSON.readTree(micros)) {
      ColumnVector[] vectors = schema.createRowBatch(1).cols;
      try {
        writer.write(new GenericInternalRow(new Object[] {each.asLong()}), 0, vectors[0], 0);
        found.add(columns.views(vectors, instant -> instant)[0].getLong(0));
      } catch (IllegalArgumentException refused) {
        found.addNull();
      }
    }
    return found.toString();
  }

  private static void spell(TypeDescription type, ArrayNode out) {
    String id = type.getAttributeValue(Columns.FIELD_ID);
    String parameters =
        switch (type.getCategory()) {
          case DECIMAL -> "(" + type.getPrecision() + ", " + type.getScale() + ")";
          case CHAR, VARCHAR -> "(" + type.getMaxLength() + ")";
          case STRUCT -> type.getFieldNames().toString();
          default -> "";
        };
    out.add(type.getCategory().name() + parameters + (id == null ? "" : " " + id));
    if (type.getChildren() != null) {
      type.getChildren().forEach(child -> spell(child, out));
    }
  }
}

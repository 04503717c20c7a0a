package io.lockgate.spark.orc;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import io.lockgate.spark.Bridge;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.math.Ordering;

/** Runs what Python and the connector must compute alike on values in JSON; the tests of both sides share their cases. */
public final class Conformance {
  private Conformance() {}

  /** Merges the inputs of a merge fixture and answers the rows that are left, as a JSON array of arrays. */
  public static String merge(String fixture) throws IOException {
    JsonNode root = Bridge.JSON.readTree(fixture);
    MergePlan plan = MergePlan.of(root.get("plan"));
    List<String> names = new ArrayList<>();
    List<DataType> types = new ArrayList<>();
    for (JsonNode column : root.get("columns")) {
      names.add(column.get("name").asText());
      types.add(DataType.fromJson(column.get("type").toString()));
    }
    List<ListInput> inputs = new ArrayList<>();
    root.get("inputs").forEach(rows -> inputs.add(new ListInput(rows(rows, types))));
    Comparator<InternalRow> ages = RowAges.of(plan.sequence().stream().map(name ->
        new RowAges.Column(names.indexOf(name), types.get(names.indexOf(name)), plan.descending().contains(name))).toList());
    DataType[] all = types.toArray(DataType[]::new);
    ArrayNode result = Bridge.JSON.createArrayNode();
    Ordering<InternalRow> keys = MergeSource.keyOrdering(all, plan.key().size());
    try (KeyMerge merge = new KeyMerge(inputs, keys, ages, names.indexOf(plan.kind()))) {
      while (merge.next()) {
        ArrayNode row = result.addArray();
        for (int i = 0; i < all.length; i++) {
          row.add(JsonValues.toJson(merge.row(), i, all[i]));
        }
      }
    }
    return result.toString();
  }

  /** The bucket of each row, as a JSON array; {@code types} and {@code rows} are JSON arrays. */
  public static String buckets(String types, String rows, int count) throws IOException {
    List<DataType> all = new ArrayList<>();
    Bridge.JSON.readTree(types).forEach(type -> all.add(DataType.fromJson(type.toString())));
    int[] ordinals = new int[all.size()];
    for (int i = 0; i < ordinals.length; i++) {
      ordinals[i] = i;
    }
    BucketHash hash = new BucketHash(ordinals, all.toArray(DataType[]::new));
    ArrayNode buckets = Bridge.JSON.createArrayNode();
    for (InternalRow row : rows(Bridge.JSON.readTree(rows), all)) {
      buckets.add(hash.bucket(row, count));
    }
    return buckets.toString();
  }

  /** Reads the splits of a scan.plan reply in this JVM and answers the rows, as a JSON array of arrays. */
  public static String read(SparkSession spark, String tableSchema, String readSchema, String plan) throws IOException {
    StructType wanted = (StructType) DataType.fromJson(readSchema);
    JsonNode reply = Bridge.JSON.readTree(plan);
    ScanSpec spec = ScanSpec.of((StructType) DataType.fromJson(tableSchema), wanted, reply, new Filter[0]);
    PartitionReaderFactory factory = OrcScans.readerFactory(spark, spec);
    ArrayNode rows = Bridge.JSON.createArrayNode();
    for (InputPartition partition : OrcScans.partitions(spark, spec, reply)) {
      if (OrcScans.columnar(spec)) {
        try (PartitionReader<ColumnarBatch> batches = factory.createColumnarReader(partition)) {
          while (batches.next()) {
            batches.get().rowIterator().forEachRemaining(row -> add(rows, row, wanted));
          }
        }
      } else {
        try (PartitionReader<InternalRow> reader = factory.createReader(partition)) {
          while (reader.next()) {
            add(rows, reader.get(), wanted);
          }
        }
      }
    }
    return rows.toString();
  }

  private static void add(ArrayNode rows, InternalRow row, StructType schema) {
    ArrayNode values = rows.addArray();
    for (int i = 0; i < schema.length(); i++) {
      values.add(JsonValues.toJson(row, i, schema.apply(i).dataType()));
    }
  }

  private static List<InternalRow> rows(JsonNode rows, List<DataType> types) {
    List<InternalRow> all = new ArrayList<>();
    for (JsonNode values : rows) {
      Object[] row = new Object[types.size()];
      for (int i = 0; i < row.length; i++) {
        row[i] = JsonValues.toInternal(values.get(i), types.get(i));
      }
      all.add(new GenericInternalRow(row));
    }
    return all;
  }

  private static final class ListInput implements KeyMerge.Input {
    private final Iterator<InternalRow> rows;
    private InternalRow current;
    private InternalRow held;

    ListInput(List<InternalRow> rows) {
      this.rows = rows.iterator();
    }

    @Override
    public boolean next() {
      current = rows.hasNext() ? rows.next() : null;
      return current != null;
    }

    @Override
    public InternalRow current() {
      return current;
    }

    @Override
    public void hold() {
      held = current;
    }

    @Override
    public InternalRow held() {
      return held;
    }

    @Override
    public void close() {}
  }
}

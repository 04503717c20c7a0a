package io.lockgate.spark.merge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.TaskFilters;
import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.files.Columns;
import io.lockgate.spark.files.PartitionPaths;
import io.lockgate.spark.integrity.Integrity;
import io.lockgate.spark.messages.MergePlanJson;
import io.lockgate.spark.messages.Messages;
import io.lockgate.spark.messages.PlanAnswer;
import io.lockgate.spark.read.MergeSource;
import io.lockgate.spark.read.OrcFileReader;
import io.lockgate.spark.read.OrcScans;
import io.lockgate.spark.read.ScanSpec;
import io.lockgate.spark.read.SearchArguments;
import io.lockgate.spark.read.SplitPacker;
import io.lockgate.spark.read.SplitSpec;
import io.lockgate.spark.write.DataFileWriter;
import io.lockgate.spark.write.WriteSpec;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.LiteralValue;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.RowToColumnConverter;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Runs what Python and the connector must compute alike on values in JSON; the tests of both sides
 * share their cases.
 */
public final class Conformance {
  private Conformance() {}

  /**
   * Merges the inputs of a merge fixture and answers the rows that are left, as a JSON array of
   * arrays. Inputs are read {@code pageRows} rows at a time, and {@code batchRows} at most are
   * answered at once.
   */
  public static String merge(String fixture, int pageRows, int batchRows) throws IOException {
    JsonNode root = Bridge.JSON.readTree(fixture);
    MergePlan plan = MergePlan.of(Messages.read(root.get("plan"), MergePlanJson.class));
    StructType schema = new StructType();
    for (JsonNode column : root.get("columns")) {
      schema =
          schema.add(column.get("name").asText(), DataType.fromJson(column.get("type").toString()));
    }
    StructType columns = schema;
    List<DataType> types = Arrays.stream(columns.fields()).map(StructField::dataType).toList();
    int keys = plan.key().size();
    int kind = columns.fieldIndex(plan.kind());
    List<ListInput> inputs = new ArrayList<>();
    for (JsonNode rows : root.get("inputs")) {
      inputs.add(new ListInput(rows(rows, types).iterator(), columns, keys, kind, pageRows));
    }
    RowOrder ages =
        RowAges.of(
            plan.sequence().stream()
                .map(columns::fieldIndex)
                .map(
                    at ->
                        new RowAges.Column(
                            at,
                            types.get(at),
                            plan.descending().contains(columns.apply(at).name())))
                .toList());
    DataType[] all = types.toArray(DataType[]::new);
    ArrayNode result = Bridge.JSON.createArrayNode();
    RowOrder order = RowOrder.byKey(MergeSource.keyOrdering(all, keys));
    List<String> names = Arrays.asList(columns.fieldNames());
    MergeBatch batch = new MergeBatch(all, 0, batchRows);
    MergeRule rule = MergeRule.of(plan, all, names::indexOf, batch);
    try (RowMerge merge = new RowMerge(inputs, order, ages, rule, batch, plan.keepsAlone())) {
      while (merge.nextBatch()) {
        merge.batch().rowIterator().forEachRemaining(row -> add(result, row, columns));
      }
    }
    return result.toString();
  }

  /**
   * The folders of the partition columns of a vector: an array of name, spark (type), value,
   * default and legacy.
   */
  public static String partitionFolders(String vector) throws IOException {
    ArrayNode folders = Bridge.JSON.createArrayNode();
    for (JsonNode each : Bridge.JSON.readTree(vector)) {
      folders.add(
          PartitionPaths.folder(
              each.get("name").asText(),
              each.get("value"),
              DataType.fromJson(each.get("spark").toString()),
              each.path("precision").asInt(0),
              each.get("default").asText(),
              each.get("legacy").asBoolean()));
    }
    return folders.toString();
  }

  /**
   * The statistics of the files, written into {@code folder}, of the cases of a vector: spark
   * (type), kept and values.
   */
  public static String statistics(SparkSession spark, String vector, String folder)
      throws IOException {
    ArrayNode found = Bridge.JSON.createArrayNode();
    for (JsonNode each : Bridge.JSON.readTree(vector)) {
      ObjectNode begin =
          Bridge.JSON.createObjectNode().put("write_id", "w").put("location", folder);
      ObjectNode field = begin.putArray("fields").addObject().put("name", "v").put("id", 0);
      field
          .put("nullable", true)
          .put("key", false)
          .putNull("precision")
          .set("type", each.get("spark"));
      begin.put("compression", "zstd").put("target_file_size", 128L << 20);
      begin.put("dictionaries", true).put("first_sequence", 0);
      begin.put("partition_default_name", "none").put("partition_legacy_name", true);
      begin
          .put("dynamic_buckets", false)
          .put("moves_keys", false)
          .put("records", false)
          .put("format", "orc");
      List.of(
              "bucket",
              "merge_plan",
              "kinds",
              "index_keys",
              "encrypt",
              "mask",
              "key_scope",
              "parquet_footer")
          .forEach(begin::putNull);
      begin.putArray("partition_keys");
      begin.putArray("primary_key");
      begin.putObject("sequence").put("descending", false).putArray("columns");
      begin.put("schema_id", 0);
      ObjectNode kept = begin.putObject("stats");
      if (!each.get("kept").isNull()) {
        kept.set("v", each.get("kept"));
      }
      Path path = new Path(folder, found.size() + ".orc");
      DataFileWriter writer =
          new DataFileWriter(
              WriteSpec.of(Messages.read(begin, io.lockgate.spark.messages.WriteSpec.class), 1),
              spark.sessionState().newHadoopConf(),
              path);
      for (InternalRow row :
          rows(each.get("values"), List.of(DataType.fromJson(each.get("spark").toString())))) {
        writer.write(row, 0);
      }
      found.add(writer.finish().get("stats").path("v"));
    }
    return found.toString();
  }

  /**
   * Reads the splits of a scan.plan reply in this JVM and answers the rows, as a JSON array of
   * arrays.
   */
  public static String read(SparkSession spark, String tableSchema, String readSchema, String plan)
      throws IOException {
    StructType wanted = (StructType) DataType.fromJson(readSchema);
    PlanAnswer reply = Messages.read(Bridge.JSON.readTree(plan), PlanAnswer.class);
    ScanSpec spec =
        ScanSpec.of("t", (StructType) DataType.fromJson(tableSchema), wanted, reply, new Filter[0]);
    PartitionReaderFactory factory = OrcScans.readerFactory(spark, spec);
    ArrayNode rows = Bridge.JSON.createArrayNode();
    for (InputPartition partition : SplitPacker.of(spark, spec, reply, false).partitions(reply)) {
      try (PartitionReader<ColumnarBatch> batches = factory.createColumnarReader(partition)) {
        while (batches.next()) {
          batches.get().rowIterator().forEachRemaining(row -> add(rows, row, wanted));
        }
      }
    }
    return rows.toString();
  }

  /**
   * How many rows of a file a task reads for each predicate of a JSON array: row groups are left
   * out as filters allow.
   */
  public static String rowsRead(String schema, String path, long size, String predicates)
      throws IOException {
    StructType columns = (StructType) DataType.fromJson(schema);
    List<Columns.Wanted> wanted = new ArrayList<>();
    for (StructField field : columns.fields()) {
      wanted.add(new Columns.Wanted(field.name(), null, field.dataType()));
    }
    SplitSpec.DataFile file = new SplitSpec.DataFile(path, size, 0);
    OrcFileReader.Trust trust = new OrcFileReader.Trust(null, Integrity.IGNORE);
    Configuration conf = new Configuration(); // which is slow to make
    ArrayNode counts = Bridge.JSON.createArrayNode();
    for (JsonNode each : Bridge.JSON.readTree(predicates)) {
      SearchArguments search =
          new SearchArguments(TaskFilters.of(new Predicate[] {predicate(each)}), columns);
      OrcFileReader.Settings settings = new OrcFileReader.Settings(0, Long.MAX_VALUE, search, 1000);
      long rows = 0;
      try (OrcFileReader reader =
          OrcFileReader.open(
              conf, file, wanted, null, trust, settings, new ColumnVector[columns.length()])) {
        while (reader.nextBatch()) {
          rows += reader.batch().numRows();
        }
      }
      counts.add(rows);
    }
    return counts.toString();
  }

  /** A predicate of Spark's, of the JSON that the connector sends. */
  public static Predicate predicate(JsonNode node) {
    return (Predicate) expression(node);
  }

  private static Expression expression(JsonNode node) {
    if (node.has("col")) {
      return Expressions.column(node.get("col").get(0).asText());
    } else if (node.has("type")) {
      DataType type = DataType.fromJson(node.get("type").toString());
      return new LiteralValue<>(
          node.get("value").isNull() ? null : Values.fromJson(node.get("value"), type), type);
    }
    List<Expression> children = new ArrayList<>();
    node.get("args").forEach(child -> children.add(expression(child)));
    return new Predicate(node.get("op").asText(), children.toArray(Expression[]::new));
  }

  /** Adds a row to a JSON array of arrays. */
  public static void add(ArrayNode rows, InternalRow row, StructType schema) {
    ArrayNode values = rows.addArray();
    for (int i = 0; i < schema.length(); i++) {
      values.add(Values.toJson(row, i, schema.apply(i).dataType()));
    }
  }

  /** Adds the values of a column to a JSON array. */
  public static void add(ArrayNode values, ColumnVector column, int count) {
    for (InternalRow row :
        (Iterable<InternalRow>)
            new ColumnarBatch(new ColumnVector[] {column}, count)::rowIterator) {
      values.add(Values.toJson(row, 0, column.dataType()));
    }
  }

  /** The rows of a JSON array of arrays. */
  public static List<InternalRow> rows(JsonNode rows, List<DataType> types) {
    List<InternalRow> all = new ArrayList<>();
    for (JsonNode values : rows) {
      Object[] row = new Object[types.size()];
      for (int i = 0; i < row.length; i++) {
        row[i] = Values.fromJson(values.get(i), types.get(i));
      }
      all.add(new GenericInternalRow(row));
    }
    return all;
  }

  /**
   * Rows as a sorted input. A page that was given back is spoilt: whoever still reads it finds
   * other values.
   */
  private static final class ListInput implements RowMerge.Input {
    private final Iterator<InternalRow> rows;
    private final StructType columns;
    private final int keys;
    private final int kind;
    private final int pageRows;

    ListInput(Iterator<InternalRow> rows, StructType columns, int keys, int kind, int pageRows) {
      this.rows = rows;
      this.columns = columns;
      this.keys = keys;
      this.kind = kind;
      this.pageRows = pageRows;
    }

    @Override
    public MergePage next() {
      if (!rows.hasNext()) {
        return null;
      }
      OnHeapColumnVector[] vectors = OnHeapColumnVector.allocateColumns(pageRows, columns);
      RowToColumnConverter converter = new RowToColumnConverter(columns);
      int count = 0;
      for (; count < pageRows && rows.hasNext(); count++) {
        converter.convert(rows.next(), vectors);
      }
      ListPage page = new ListPage(vectors, pageRows);
      page.fill(count, keys, kind);
      return page;
    }

    @Override
    public void giveBack(MergePage page) {
      for (OnHeapColumnVector vector : ((ListPage) page).vectors) {
        vector.reset();
        vector.putNulls(0, pageRows);
      }
    }

    @Override
    public void close() {}
  }

  private static final class ListPage extends MergePage {
    private final OnHeapColumnVector[] vectors;

    ListPage(OnHeapColumnVector[] vectors, int mostRows) {
      super(vectors, mostRows);
      this.vectors = vectors;
    }
  }
}

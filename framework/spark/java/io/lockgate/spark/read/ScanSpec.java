package io.lockgate.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import io.lockgate.spark.files.Columns;
import io.lockgate.spark.files.FileColumns;
import io.lockgate.spark.integrity.Integrity;
import io.lockgate.spark.merge.MergePlan;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The facts that all readers of one scan share: its columns, their names in files, the merge plan,
 * the owner of the keys.
 */
public final class ScanSpec implements Serializable {
  private final String table;
  private final StructType tableSchema;
  private final StructType readSchema;
  private final Map<Long, Map<String, Integer>> fieldIds;
  private final Map<Long, Map<Integer, DataType>> types = new HashMap<>();
  private final long schemaId;
  private final MergePlan mergePlan;
  private final String keyScope;
  private final Integrity integrity;
  private final Filter[] filters;
  private Filter[] late = {};
  private final List<String> partitionColumns = new ArrayList<>();

  private ScanSpec(
      String table,
      StructType tableSchema,
      StructType readSchema,
      JsonNode plan,
      Filter[] filters) {
    this.table = table;
    this.tableSchema = tableSchema;
    this.readSchema = readSchema;
    this.fieldIds = fieldIds(plan.get("schemas"));
    plan.get("schemas")
        .properties()
        .forEach(schema -> types.put(Long.valueOf(schema.getKey()), typesIn(schema.getValue())));
    this.schemaId = plan.get("schema_id").asLong();
    JsonNode merge = plan.get("merge_plan");
    this.mergePlan = merge.isNull() ? null : MergePlan.of(merge);
    this.keyScope = plan.get("key_scope").textValue();
    this.integrity = Integrity.of(plan.get("integrity").asText());
    this.filters = filters.clone();
    JsonNode bucketing = plan.get("bucketing");
    if (!bucketing.isNull()) {
      bucketing.get("partition_columns").forEach(name -> partitionColumns.add(name.asText()));
    }
  }

  /**
   * Builds the specification from the reply of scan.plan; {@code readSchema} is what Spark wants,
   * in its order.
   */
  public static ScanSpec of(
      String table,
      StructType tableSchema,
      StructType readSchema,
      JsonNode plan,
      Filter[] filters) {
    return new ScanSpec(table, tableSchema, readSchema, plan, filters);
  }

  /** Adds filters that were only known at run time, by which rows are left out. */
  public ScanSpec with(Filter[] atRunTime) {
    late = atRunTime.clone();
    return this;
  }

  private static Map<Long, Map<String, Integer>> fieldIds(JsonNode schemas) {
    Map<Long, Map<String, Integer>> all = new HashMap<>();
    schemas
        .properties()
        .forEach(
            schema -> {
              Map<String, Integer> ids = new HashMap<>();
              schema
                  .getValue()
                  .forEach(
                      field -> {
                        String name = field.get("name").asText();
                        ids.put(name, field.get("id").asInt());
                        field
                            .get("inside")
                            .forEach(
                                inner ->
                                    ids.put(
                                        path(name, inner.get("path")), inner.get("id").asInt()));
                      });
              all.put(Long.valueOf(schema.getKey()), ids);
            });
    return all;
  }

  private static Map<Integer, DataType> typesIn(JsonNode fields) {
    Map<Integer, DataType> types = new HashMap<>();
    for (JsonNode field : fields) {
      types.put(field.get("id").asInt(), DataType.fromJson(field.get("type").toString()));
    }
    return types;
  }

  private static String path(String column, JsonNode parts) {
    StringBuilder path = new StringBuilder(column);
    parts.forEach(part -> path.append(Columns.SEPARATOR).append(part.asText()));
    return path.toString();
  }

  /** The table's name, for messages. */
  String table() {
    return table;
  }

  StructType tableSchema() {
    return tableSchema;
  }

  StructType readSchema() {
    return readSchema;
  }

  /** Tells whether a column that is read says where rows lie, instead of being one of the table. */
  boolean isOfFile(String column) {
    return FileColumns.has(column, tableSchema);
  }

  /** The columns that the table is partitioned by, in their order. */
  List<String> partitionColumns() {
    return partitionColumns;
  }

  /**
   * The splits of a plan; files that need no merge are cut into ranges of at most {@code most}
   * bytes.
   */
  List<SplitSpec> splits(JsonNode plan, long most) {
    List<SplitSpec> pieces = new ArrayList<>();
    plan.get("splits").forEach(split -> cut(split, most, pieces));
    return pieces;
  }

  private void cut(JsonNode split, long most, List<SplitSpec> pieces) {
    Map<String, Serializable> partition = SplitSpec.partition(split.get("partition"), tableSchema);
    int bucket = split.get("bucket").asInt();
    if (isOfFile(FileColumns.PARTITION)) {
      partition.put(
          FileColumns.PARTITION, UTF8String.fromString(split.get("partition_text").asText()));
    }
    if (isOfFile(FileColumns.BUCKET)) {
      partition.put(FileColumns.BUCKET, bucket);
    }
    JsonNode commit = split.get("commit");
    if (!commit.isNull()) {
      partition.put(FileColumns.COMMIT_VERSION, commit.get("version").asLong());
      partition.put(FileColumns.COMMIT_TIMESTAMP, commit.get("micros").asLong());
    }
    if (!split.get("kind").isNull()) {
      partition.put(FileColumns.VALUE_KIND, (byte) split.get("kind").asInt());
    }
    List<SplitSpec.DataFile> files = SplitSpec.files(split.get("files"));
    if (split.get("merge").asBoolean()) {
      if (mergePlan == null) {
        throw new IllegalArgumentException("the plan holds files to merge but no merge_plan");
      }
      pieces.add(new SplitSpec(partition, bucket, true, files, 0, Long.MAX_VALUE));
      return;
    }
    for (int i = 0; i < files.size(); i++) {
      SplitSpec.DataFile file = files.get(i);
      for (long[] range : SplitSpec.ranges(split.get("files").get(i))) {
        long end = range[0] + range[1];
        for (long start = range[0]; start < end; start += Math.min(most, end - start)) {
          pieces.add(
              new SplitSpec(
                  partition, bucket, false, List.of(file), start, Math.min(most, end - start)));
        }
      }
    }
  }

  MergePlan mergePlan() {
    return mergePlan;
  }

  String keyScope() {
    return keyScope;
  }

  Integrity integrity() {
    return integrity;
  }

  Filter[] filters() {
    return filters;
  }

  /** The filters that were only known at run time. */
  Filter[] late() {
    return late;
  }

  /** The field id of a column of the table as it is read, or null where the plan does not tell. */
  Integer fieldId(String column) {
    return fieldIds.getOrDefault(schemaId, Map.of()).get(column);
  }

  /**
   * The field ids of the columns inside a column of the table as it is read, by their paths in it.
   */
  Map<String, Integer> inside(String column) {
    return inside(schemaId, column);
  }

  /** The same for a column as an older schema names it. */
  Map<String, Integer> inside(long schema, String column) {
    Map<String, Integer> inside = new HashMap<>();
    fieldIds
        .getOrDefault(schema, Map.of())
        .forEach(
            (path, id) -> {
              if (path.startsWith(column + Columns.SEPARATOR)) {
                inside.put(path.substring(column.length()), id);
              }
            });
    return inside;
  }

  /**
   * The types of columns by field id in the schema that a file was written with; empty where the
   * plan does not carry them.
   */
  Map<Integer, DataType> types(long fileSchemaId) {
    return types.getOrDefault(fileSchemaId, Map.of());
  }

  /**
   * Column names by field id in the schema that a file was written with, or null where the plan
   * does not carry it.
   */
  Map<Integer, String> names(long fileSchemaId) {
    Map<String, Integer> ids = fieldIds.get(fileSchemaId);
    if (ids == null) {
      return null;
    }
    Map<Integer, String> names = new HashMap<>();
    ids.forEach(
        (path, id) -> names.put(id, path.substring(path.lastIndexOf(Columns.SEPARATOR) + 1)));
    return names;
  }
}

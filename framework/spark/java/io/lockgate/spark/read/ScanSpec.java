package io.lockgate.spark.read;

import io.lockgate.spark.files.Columns;
import io.lockgate.spark.files.FileColumns;
import io.lockgate.spark.integrity.Integrity;
import io.lockgate.spark.merge.MergePlan;
import io.lockgate.spark.messages.FileField;
import io.lockgate.spark.messages.InnerField;
import io.lockgate.spark.messages.PlanAnswer;
import io.lockgate.spark.messages.SplitJson;
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
  private final Map<Long, Map<String, Integer>> fieldIds = new HashMap<>();
  private final Map<Long, Map<Integer, DataType>> types = new HashMap<>();
  private final long schemaId;
  private final MergePlan mergePlan;
  private final String keyScope;
  private final Integrity integrity;
  private final Filter[] filters;
  private Filter[] late = {};
  private final List<String> partitionColumns;

  private ScanSpec(
      String table,
      StructType tableSchema,
      StructType readSchema,
      PlanAnswer plan,
      Filter[] filters) {
    this.table = table;
    this.tableSchema = tableSchema;
    this.readSchema = readSchema;
    plan.schemas()
        .forEach(
            (id, fields) -> {
              fieldIds.put(Long.valueOf(id), idsIn(fields));
              types.put(Long.valueOf(id), typesIn(fields));
            });
    this.schemaId = plan.schemaId();
    this.mergePlan = plan.mergePlan() == null ? null : MergePlan.of(plan.mergePlan());
    this.keyScope = plan.keyScope();
    this.integrity = Integrity.of(plan.integrity());
    this.filters = filters.clone();
    this.partitionColumns =
        plan.bucketing() == null ? List.of() : plan.bucketing().partitionColumns();
  }

  /**
   * Builds the specification from the reply of scan.plan; {@code readSchema} is what Spark wants,
   * in its order.
   */
  public static ScanSpec of(
      String table,
      StructType tableSchema,
      StructType readSchema,
      PlanAnswer plan,
      Filter[] filters) {
    return new ScanSpec(table, tableSchema, readSchema, plan, filters);
  }

  /** Adds filters that were only known at run time, by which rows are left out. */
  public ScanSpec with(Filter[] atRunTime) {
    late = atRunTime.clone();
    return this;
  }

  private static Map<String, Integer> idsIn(List<FileField> fields) {
    Map<String, Integer> ids = new HashMap<>();
    for (FileField field : fields) {
      ids.put(field.name(), Math.toIntExact(field.id()));
      for (InnerField inner : field.inside()) {
        String path = String.join(Columns.SEPARATOR, inner.path());
        ids.put(field.name() + Columns.SEPARATOR + path, Math.toIntExact(inner.id()));
      }
    }
    return ids;
  }

  private static Map<Integer, DataType> typesIn(List<FileField> fields) {
    Map<Integer, DataType> types = new HashMap<>();
    for (FileField field : fields) {
      types.put(Math.toIntExact(field.id()), DataType.fromJson(field.type().toString()));
    }
    return types;
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
  List<SplitSpec> splits(PlanAnswer plan, long most) {
    List<SplitSpec> pieces = new ArrayList<>();
    plan.splits().forEach(split -> cut(split, most, pieces));
    return pieces;
  }

  private void cut(SplitJson split, long most, List<SplitSpec> pieces) {
    Map<String, Serializable> partition = SplitSpec.partition(split.partition(), tableSchema);
    int bucket = Math.toIntExact(split.bucket());
    if (isOfFile(FileColumns.PARTITION)) {
      partition.put(FileColumns.PARTITION, UTF8String.fromString(split.partitionText()));
    }
    if (isOfFile(FileColumns.BUCKET)) {
      partition.put(FileColumns.BUCKET, bucket);
    }
    if (split.commit() != null) {
      partition.put(FileColumns.COMMIT_VERSION, split.commit().version());
      partition.put(FileColumns.COMMIT_TIMESTAMP, split.commit().micros());
    }
    if (split.kind() != null) {
      partition.put(FileColumns.VALUE_KIND, split.kind().byteValue());
    }
    List<SplitSpec.DataFile> files = SplitSpec.files(split.files());
    if (split.merge()) {
      if (mergePlan == null) {
        throw new IllegalArgumentException("the plan holds files to merge but no merge_plan");
      }
      pieces.add(new SplitSpec(partition, bucket, true, files, 0, Long.MAX_VALUE));
      return;
    }
    for (int i = 0; i < files.size(); i++) {
      SplitSpec.DataFile file = files.get(i);
      for (List<Long> range : SplitSpec.ranges(split.files().get(i))) {
        long end = range.get(0) + range.get(1);
        for (long start = range.get(0); start < end; start += Math.min(most, end - start)) {
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

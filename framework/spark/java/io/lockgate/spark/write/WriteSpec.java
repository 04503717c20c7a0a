package io.lockgate.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import io.lockgate.spark.files.FileStatistics;
import io.lockgate.spark.index.KeyPlan;
import io.lockgate.spark.merge.MergePlan;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/** The facts that all writers of one query share, from the reply of write.begin. */
public final class WriteSpec implements Serializable {
  /**
   * A column of the table; {@code precision} is that of a type that has one, which Spark's type may
   * not tell.
   */
  record Field(String name, int id, DataType type, int precision) implements Serializable {
    private static final int MILLISECONDS = 3;

    /** Tells whether it is a timestamp that Paimon keeps as milliseconds. */
    boolean isOfMilliseconds() {
      boolean isTimestamp = type instanceof TimestampType || type instanceof TimestampNTZType;
      return isTimestamp && precision <= MILLISECONDS;
    }
  }

  private final String writeId;
  private final String location;
  private final List<Field> fields;
  private final int[] partition;
  private final int[] primaryKey;
  private final int[] trimmedKey;
  private final int[] bucketKey;
  private final int[] sequence;
  private final boolean descending;
  private final MergePlan mergePlan;
  private final int kindColumn;
  private final Set<Integer> droppedKinds = new HashSet<>();
  private final Map<Integer, String> refusedKinds = new HashMap<>();
  private final int buckets;
  private final boolean asksForBuckets;
  private final boolean movesKeys;
  private final boolean records;
  private final long firstSequence;
  private final Map<String, FileStatistics.Mode> statistics;
  private final KeyPlan indexKeys;
  private final String encrypt;
  private final String mask;
  private final String keyScope;
  private final boolean dictionaries;
  private final String format;
  private final byte[] parquetFooter;
  private final String compression;
  private final long targetFileSize;
  private final String partitionDefaultName;
  private final boolean partitionLegacyName;

  private WriteSpec(JsonNode begin, int tasks) {
    writeId = begin.get("write_id").asText();
    location = begin.get("location").asText();
    fields = fields(begin.get("fields"));
    partition = ordinals(begin.get("partition_keys"));
    primaryKey = ordinals(begin.get("primary_key"));
    trimmedKey = without(primaryKey, partition);
    JsonNode bucket = begin.get("bucket");
    bucketKey = bucket.isNull() ? new int[0] : ordinals(bucket.get("columns"));
    buckets = bucket.isNull() ? -1 : bucket.get("count").asInt();
    asksForBuckets = begin.get("dynamic_buckets").asBoolean();
    movesKeys = begin.get("moves_keys").asBoolean();
    records = begin.get("records").asBoolean();
    sequence = ordinals(begin.get("sequence").get("columns"));
    descending = begin.get("sequence").get("descending").asBoolean();
    JsonNode plan = begin.get("merge_plan");
    mergePlan = plan.isNull() ? null : MergePlan.of(plan);
    kindColumn = kinds(begin.get("kinds"));
    firstSequence = begin.get("first_sequence").asLong();
    statistics = new HashMap<>();
    begin
        .get("stats")
        .properties()
        .forEach(
            column -> statistics.put(column.getKey(), FileStatistics.Mode.of(column.getValue())));
    indexKeys =
        KeyPlan.of(
            begin.get("index_keys"),
            fields.stream().map(Field::name).toList(),
            fields.stream().map(Field::type).toList(),
            tasks);
    encrypt = text(begin, "encrypt");
    mask = text(begin, "mask");
    keyScope = text(begin, "key_scope");
    dictionaries = begin.get("dictionaries").asBoolean();
    format = begin.get("format").asText();
    String footer = text(begin, "parquet_footer");
    parquetFooter = footer == null ? null : Base64.getDecoder().decode(footer);
    compression = begin.get("compression").asText();
    targetFileSize = begin.get("target_file_size").asLong();
    partitionDefaultName = begin.get("partition_default_name").asText();
    partitionLegacyName = begin.get("partition_legacy_name").asBoolean();
  }

  /** Builds the specification from the reply of write.begin, for so many tasks. */
  public static WriteSpec of(JsonNode begin, int tasks) {
    return new WriteSpec(begin, tasks);
  }

  private static List<Field> fields(JsonNode fields) {
    List<Field> all = new ArrayList<>();
    for (JsonNode field : fields) {
      DataType type = DataType.fromJson(field.get("type").toString());
      all.add(
          new Field(
              field.get("name").asText(),
              field.get("id").asInt(),
              type,
              field.get("precision").asInt()));
    }
    return all;
  }

  private int[] ordinals(JsonNode names) {
    int[] ordinals = new int[names.size()];
    for (int i = 0; i < ordinals.length; i++) {
      ordinals[i] = ordinal(names.get(i).asText());
    }
    return ordinals;
  }

  private int ordinal(String name) {
    for (int i = 0; i < fields.size(); i++) {
      if (fields.get(i).name().equals(name)) {
        return i;
      }
    }
    throw new IllegalArgumentException("column " + name + " is not in the table's schema");
  }

  private static int[] without(int[] all, int[] some) {
    return java.util.Arrays.stream(all)
        .filter(ordinal -> java.util.Arrays.stream(some).noneMatch(other -> other == ordinal))
        .toArray();
  }

  private static String text(JsonNode node, String field) {
    String text = node.get(field).textValue();
    return text == null || text.isEmpty() ? null : text;
  }

  /** Notes which kinds of rows are not written; answers the column of a row's kind, or -1. */
  private int kinds(JsonNode kinds) {
    if (kinds.isNull()) {
      return -1;
    }
    kinds.get("dropped").forEach(kind -> droppedKinds.add(kind.asInt()));
    kinds
        .get("refused")
        .properties()
        .forEach(
            kind -> refusedKinds.put(Integer.valueOf(kind.getKey()), kind.getValue().asText()));
    String column = kinds.get("column").textValue();
    return column == null ? -1 : ordinal(column);
  }

  /** Returns what the names of all files of this write start with, after "data-". */
  String writeId() {
    return writeId;
  }

  String location() {
    return location;
  }

  List<Field> fields() {
    return fields;
  }

  boolean keyed() {
    return primaryKey.length > 0;
  }

  int[] partition() {
    return partition;
  }

  int[] primaryKey() {
    return primaryKey;
  }

  /**
   * The primary key without partition columns: what rows are sorted and merged by within a bucket.
   */
  int[] trimmedKey() {
    return trimmedKey;
  }

  int[] bucketKey() {
    return bucketKey;
  }

  /** The columns that say which row of a key is newest, before the order in which they came. */
  int[] sequence() {
    return sequence;
  }

  /** Tells whether the smaller values of {@link #sequence()} are newer. */
  boolean descending() {
    return descending;
  }

  /** Returns how rows of one key merge; null where the newest is the row. */
  MergePlan mergePlan() {
    return mergePlan == null || mergePlan.engine().equals(MergePlan.DEDUPLICATE) ? null : mergePlan;
  }

  /** The column whose text is the kind of a row, below 0 if rows are insertions. */
  int kindColumn() {
    return kindColumn;
  }

  /** Tells whether rows of a kind are written; an error where the table cannot take them. */
  boolean admits(byte kind) {
    String reason = refusedKinds.get((int) kind);
    if (reason != null) {
      throw new IllegalArgumentException(reason);
    }
    return !droppedKinds.contains((int) kind);
  }

  /** The table's bucket count; below 1 for tables without buckets, whose files lie in bucket 0. */
  int buckets() {
    return buckets;
  }

  /** Tells whether the driver gives each key its bucket. */
  boolean asksForBuckets() {
    return asksForBuckets;
  }

  /**
   * Tells whether keys may move between partitions, of which the driver then gives each key one.
   */
  boolean movesKeys() {
    return movesKeys;
  }

  /** Tells whether rows are also stored as they come, in a changelog. */
  boolean records() {
    return records;
  }

  /** The first free sequence number. */
  long firstSequence() {
    return firstSequence;
  }

  /** Returns what is kept in manifests of a column, null where that is nothing. */
  FileStatistics.Mode statistics(String column) {
    return statistics.get(column);
  }

  /** Returns what is collected of each data file for the index database, null if nothing. */
  KeyPlan indexKeys() {
    return indexKeys;
  }

  String encrypt() {
    return encrypt;
  }

  String mask() {
    return mask;
  }

  String keyScope() {
    return keyScope;
  }

  /**
   * Tells whether texts may be stored by dictionaries, whose sizes tell how many values there are.
   */
  boolean dictionaries() {
    return dictionaries;
  }

  /** The format of files, which their names end with. */
  String format() {
    return format;
  }

  /** The footer of a Parquet file of the table without rows; null for other formats. */
  byte[] parquetFooter() {
    return parquetFooter;
  }

  String compression() {
    return compression;
  }

  String partitionDefaultName() {
    return partitionDefaultName;
  }

  boolean partitionLegacyName() {
    return partitionLegacyName;
  }

  long targetFileSize() {
    return targetFileSize;
  }
}

package io.lockgate.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import io.lockgate.spark.files.FileStatistics;
import io.lockgate.spark.merge.MergePlan;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.types.DataType;

/** The knowledge that all writers of one query share; built from the reply of write.begin. */
public final class WriteSpec implements Serializable {
  private static final long DEFAULT_FILE_SIZE = 128L << 20;

  /**
   * A column of the table; {@code precision} is that of a type that has one, which Spark's type may
   * not tell.
   */
  record Field(String name, int id, DataType type, int precision) implements Serializable {}

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
  private final long firstSequence;
  private final Map<String, Long> firstSequences;
  private final Map<String, FileStatistics.Mode> statistics;
  private final String encrypt;
  private final String mask;
  private final String keyScope;
  private final boolean dictionaries;
  private final String compression;
  private final long targetFileSize;
  private final String partitionDefaultName;
  private final boolean partitionLegacyName;

  private WriteSpec(JsonNode begin) {
    writeId = begin.get("write_id").asText();
    location = begin.get("location").asText();
    fields = fields(begin.get("fields"));
    partition = ordinals(begin.path("partition_keys"));
    primaryKey = ordinals(begin.path("primary_key"));
    trimmedKey = without(primaryKey, partition);
    JsonNode bucket = begin.path("bucket");
    bucketKey = ordinals(bucket.path("columns"));
    buckets = bucket.path("count").asInt(-1);
    sequence = ordinals(begin.path("sequence").path("columns"));
    descending = begin.path("sequence").path("descending").asBoolean(false);
    mergePlan = begin.hasNonNull("merge_plan") ? MergePlan.of(begin.get("merge_plan")) : null;
    JsonNode kinds = begin.path("kinds");
    kindColumn = kinds.hasNonNull("column") ? ordinal(kinds.get("column").asText()) : -1;
    kinds.path("dropped").forEach(kind -> droppedKinds.add(kind.asInt()));
    kinds
        .path("refused")
        .properties()
        .forEach(
            kind -> refusedKinds.put(Integer.valueOf(kind.getKey()), kind.getValue().asText()));
    JsonNode first = begin.path("first_sequence");
    firstSequence = first.isObject() ? 0 : first.asLong(0);
    firstSequences = new HashMap<>();
    if (first.isObject()) {
      first
          .properties()
          .forEach(entry -> firstSequences.put(entry.getKey(), entry.getValue().asLong()));
    }
    statistics = new HashMap<>();
    begin
        .path("stats")
        .properties()
        .forEach(
            column -> statistics.put(column.getKey(), FileStatistics.Mode.of(column.getValue())));
    encrypt = text(begin, "encrypt");
    mask = text(begin, "mask");
    keyScope = text(begin, "key_scope");
    dictionaries = begin.path("dictionaries").asBoolean(true);
    compression = begin.hasNonNull("compression") ? begin.get("compression").asText() : "zstd";
    targetFileSize = sizeOf(begin.path("target_file_size"));
    partitionDefaultName = begin.path("partition_default_name").asText("__DEFAULT_PARTITION__");
    partitionLegacyName = begin.path("partition_legacy_name").asBoolean(true);
  }

  /** Builds the specification from the reply of write.begin. */
  public static WriteSpec of(JsonNode begin) {
    return new WriteSpec(begin);
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
              field.path("precision").asInt(0)));
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
    return node.hasNonNull(field) && !node.get(field).asText().isEmpty()
        ? node.get(field).asText()
        : null;
  }

  private static long sizeOf(JsonNode size) {
    long bytes = size.asLong(0);
    return bytes > 0 ? bytes : DEFAULT_FILE_SIZE;
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

  /**
   * The first free sequence number of a bucket, named by the JSON array of its partition values and
   * its number.
   */
  long firstSequence(String bucket) {
    return firstSequences.getOrDefault(bucket, firstSequence);
  }

  /** Returns what is kept in manifests of a column, null where that is nothing. */
  FileStatistics.Mode statistics(String column) {
    return statistics.get(column);
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

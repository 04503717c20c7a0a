package io.lockgate.spark.write;

import io.lockgate.spark.files.FileStatistics;
import io.lockgate.spark.index.KeyPlan;
import io.lockgate.spark.merge.MergePlan;
import io.lockgate.spark.messages.KindsJson;
import io.lockgate.spark.messages.WrittenField;
import java.io.Serializable;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
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

    static Field of(WrittenField field) {
      return new Field(
          field.name(),
          Math.toIntExact(field.id()),
          DataType.fromJson(field.type().toString()),
          field.precision() == null ? 0 : Math.toIntExact(field.precision()));
    }

    /** Tells whether it is a timestamp that Paimon keeps as milliseconds. */
    boolean isOfMilliseconds() {
      boolean isTimestamp = type instanceof TimestampType || type instanceof TimestampNTZType;
      return isTimestamp && precision <= MILLISECONDS;
    }
  }

  private final io.lockgate.spark.messages.WriteSpec begin;
  private final List<Field> fields;
  private final int[] partition;
  private final int[] primaryKey;
  private final int[] trimmedKey;
  private final int[] bucketKey;
  private final int[] sequence;
  private final MergePlan mergePlan;
  private final int kindColumn;
  private final Map<Integer, String> refusedKinds = new HashMap<>();
  private final Map<String, FileStatistics.Mode> statistics = new HashMap<>();
  private final KeyPlan indexKeys;
  private final byte[] parquetFooter;

  private WriteSpec(io.lockgate.spark.messages.WriteSpec begin, int tasks) {
    this.begin = begin;
    fields = begin.fields().stream().map(Field::of).toList();
    List<String> names = fields.stream().map(Field::name).toList();
    partition = ordinals(begin.partitionKeys());
    primaryKey = ordinals(begin.primaryKey());
    trimmedKey = without(primaryKey, partition);
    bucketKey = begin.bucket() == null ? new int[0] : ordinals(begin.bucket().columns());
    sequence = ordinals(begin.sequence().columns());
    mergePlan = begin.mergePlan() == null ? null : MergePlan.of(begin.mergePlan());
    KindsJson kinds = begin.kinds();
    kindColumn = kinds == null || kinds.column() == null ? -1 : ordinal(kinds.column());
    if (kinds != null) {
      kinds.refused().forEach((kind, reason) -> refusedKinds.put(Integer.valueOf(kind), reason));
    }
    begin.stats().forEach((name, mode) -> statistics.put(name, FileStatistics.Mode.of(mode)));
    indexKeys =
        KeyPlan.of(begin.indexKeys(), names, fields.stream().map(Field::type).toList(), tasks);
    String footer = text(begin.parquetFooter());
    parquetFooter = footer == null ? null : Base64.getDecoder().decode(footer);
  }

  /** Builds the specification from the answer of write.begin, for so many tasks. */
  public static WriteSpec of(io.lockgate.spark.messages.WriteSpec begin, int tasks) {
    return new WriteSpec(begin, tasks);
  }

  private int[] ordinals(List<String> names) {
    return names.stream().mapToInt(this::ordinal).toArray();
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
    return Arrays.stream(all)
        .filter(ordinal -> Arrays.stream(some).noneMatch(other -> other == ordinal))
        .toArray();
  }

  private static String text(String text) {
    return text == null || text.isEmpty() ? null : text;
  }

  /** Returns what the names of all files of this write start with, after "data-". */
  String writeId() {
    return begin.writeId();
  }

  String location() {
    return begin.location();
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
    return begin.sequence().descending();
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
    return begin.kinds() == null || !begin.kinds().dropped().contains((long) kind);
  }

  /** The table's bucket count; below 1 for tables without buckets, whose files lie in bucket 0. */
  int buckets() {
    return begin.bucket() == null ? -1 : Math.toIntExact(begin.bucket().count());
  }

  /** Tells whether the driver gives each key its bucket. */
  boolean asksForBuckets() {
    return begin.dynamicBuckets();
  }

  /**
   * Tells whether keys may move between partitions, of which the driver then gives each key one.
   */
  boolean movesKeys() {
    return begin.movesKeys();
  }

  /** Tells whether rows are also stored as they come, in a changelog. */
  boolean records() {
    return begin.records();
  }

  /** The first free sequence number. */
  long firstSequence() {
    return begin.firstSequence();
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
    return text(begin.encrypt());
  }

  String mask() {
    return text(begin.mask());
  }

  String keyScope() {
    return text(begin.keyScope());
  }

  /**
   * Tells whether texts may be stored by dictionaries, whose sizes tell how many values there are.
   */
  boolean dictionaries() {
    return begin.dictionaries();
  }

  /** The format of files, which their names end with. */
  String format() {
    return begin.format();
  }

  /** The footer of a Parquet file of the table without rows; null for other formats. */
  byte[] parquetFooter() {
    return parquetFooter;
  }

  String compression() {
    return begin.compression();
  }

  String partitionDefaultName() {
    return begin.partitionDefaultName();
  }

  boolean partitionLegacyName() {
    return begin.partitionLegacyName();
  }

  long targetFileSize() {
    return begin.targetFileSize();
  }
}

package io.lockgate.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.files.DeletedRows;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** One piece of work: files to merge by key, or a range of one file to read as it is. */
public record SplitSpec(
    Map<String, Serializable> partition,
    int bucket,
    boolean merge,
    List<DataFile> files,
    long start,
    long length)
    implements Serializable {

  /**
   * A data file: its URI, size in bytes, the id of the schema it was written with, where its
   * deleted rows are, or null, and of a table whose rows have ids that of its first row and the
   * number of its snapshot.
   */
  public record DataFile(
      String path,
      long size,
      long schemaId,
      DeletedRows.Location deleted,
      Long firstRowId,
      Long sequence)
      implements Serializable {
    public DataFile(String path, long size, long schemaId) {
      this(path, size, schemaId, null, null, null);
    }
  }

  /** Partition values in Spark's internal form, by column name. */
  static Map<String, Serializable> partition(
      JsonNode values, org.apache.spark.sql.types.StructType schema) {
    Map<String, Serializable> partition = new HashMap<>();
    values
        .properties()
        .forEach(
            value -> {
              if (!schema.getFieldIndex(value.getKey()).isDefined()) {
                throw new IllegalArgumentException(
                    "partition column " + value.getKey() + " is not in the table's schema");
              }
              partition.put(
                  value.getKey(),
                  (Serializable)
                      Values.fromJson(value.getValue(), schema.apply(value.getKey()).dataType()));
            });
    return partition;
  }

  static List<DataFile> files(JsonNode files) {
    List<DataFile> all = new ArrayList<>();
    files.forEach(
        file ->
            all.add(
                new DataFile(
                    file.get("path").asText(),
                    file.get("size").asLong(),
                    file.get("schema_id").asLong(),
                    deleted(file),
                    number(file, "first_row_id"),
                    number(file, "sequence"))));
    return all;
  }

  /** The starts and lengths of the bytes of a file to read. */
  static List<long[]> ranges(JsonNode file) {
    if (file.get("ranges").isNull()) {
      return List.of(new long[] {0, file.get("size").asLong()});
    }
    List<long[]> all = new ArrayList<>();
    file.get("ranges")
        .forEach(range -> all.add(new long[] {range.get(0).asLong(), range.get(1).asLong()}));
    return all;
  }

  private static Long number(JsonNode file, String name) {
    return file.get(name).isNull() ? null : file.get(name).asLong();
  }

  private static DeletedRows.Location deleted(JsonNode file) {
    JsonNode vector = file.get("vector");
    return vector.isNull()
        ? null
        : location(
            vector,
            file.get("rows").asLong(),
            vector.get("shows").asBoolean(),
            vector.get("but_not"));
  }

  private static DeletedRows.Location location(
      JsonNode vector, long rows, boolean shows, JsonNode butNot) {
    return new DeletedRows.Location(
        vector.get("path").asText(),
        vector.get("offset").asLong(),
        vector.get("length").asLong(),
        vector.get("cardinality").asLong(),
        rows,
        shows,
        butNot == null || butNot.isNull() ? null : location(butNot, rows, false, null));
  }

  long bytes() {
    return merge ? files.stream().mapToLong(DataFile::size).sum() : length;
  }

  @Override
  public String toString() {
    return (merge ? "merge of " : "") + files.size() + " file(s), " + bytes() + " bytes";
  }
}

package io.lockgate.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.files.DeletedRows;
import io.lockgate.spark.messages.FileJson;
import io.lockgate.spark.messages.VectorJson;
import io.lockgate.spark.messages.VectorSpan;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.types.StructType;

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
  static Map<String, Serializable> partition(Map<String, JsonNode> values, StructType schema) {
    Map<String, Serializable> partition = new HashMap<>();
    values.forEach(
        (name, value) -> {
          if (!schema.getFieldIndex(name).isDefined()) {
            throw new IllegalArgumentException(
                "partition column " + name + " is not in the table's schema");
          }
          partition.put(name, (Serializable) Values.fromJson(value, schema.apply(name).dataType()));
        });
    return partition;
  }

  static List<DataFile> files(List<FileJson> files) {
    List<DataFile> all = new ArrayList<>(files.size());
    for (FileJson file : files) {
      all.add(
          new DataFile(
              file.path(),
              file.size(),
              file.schemaId(),
              deleted(file),
              file.firstRowId(),
              file.sequence()));
    }
    return all;
  }

  private static DeletedRows.Location deleted(FileJson file) {
    VectorJson vector = file.vector();
    if (vector == null) {
      return null;
    }
    VectorSpan butNot = vector.butNot();
    return new DeletedRows.Location(
        vector.path(),
        vector.offset(),
        vector.length(),
        vector.cardinality(),
        file.rows(),
        vector.shows(),
        butNot == null
            ? null
            : new DeletedRows.Location(
                butNot.path(),
                butNot.offset(),
                butNot.length(),
                butNot.cardinality(),
                file.rows(),
                false,
                null));
  }

  /** The starts and lengths of the bytes of a file to read. */
  static List<List<Long>> ranges(FileJson file) {
    return file.ranges() == null ? List.of(List.of(0L, file.size())) : file.ranges();
  }

  long bytes() {
    return merge ? files.stream().mapToLong(DataFile::size).sum() : length;
  }

  @Override
  public String toString() {
    return (merge ? "merge of " : "") + files.size() + " file(s), " + bytes() + " bytes";
  }
}

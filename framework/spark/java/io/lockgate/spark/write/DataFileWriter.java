package io.lockgate.spark.write;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.index.KeyCollector;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSError;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * Writes one data file: for key tables key columns, sequence number and kind before the table's own
 * columns.
 */
public final class DataFileWriter {
  static final byte INSERT = 0;
  static final byte UPDATE_BEFORE = 1;
  static final byte UPDATE_AFTER = 2;
  static final byte DELETE = 3;
  // Rows after which a file's size is looked at.
  private static final int CHECKED_ROWS = 8 * 1024;

  private final WriteSpec spec;
  private final FileSystem files;
  private final Path path;
  private final FileOutput output;
  private final KeyCollector keys;
  private long rows;
  private long deletes;
  private long firstSequence = -1;
  private long lastSequence = -1;
  private InternalRow firstKey;
  private InternalRow lastKey;

  public DataFileWriter(WriteSpec spec, Configuration conf, Path path) throws IOException {
    this(spec, conf, path, null);
  }

  /** Opens a file whose rows {@code keys} sees, if it is not null. */
  DataFileWriter(WriteSpec spec, Configuration conf, Path path, KeyCollector keys)
      throws IOException {
    this.keys = keys;
    this.spec = spec;
    this.path = path;
    this.files = FileOutput.raw(path.getFileSystem(conf));
    try {
      this.output = FileOutput.open(spec, conf, path);
    } catch (IOException | RuntimeException | FSError failure) {
      throw WriteFailures.named(path.toString(), failure);
    }
  }

  /** Adds a row, whose table columns begin at {@code offset}. */
  public void write(InternalRow row, int offset) throws IOException {
    try {
      output.write(row, offset);
    } catch (IOException | RuntimeException | FSError failure) {
      throw WriteFailures.named(path.toString(), failure);
    }
    collect(row, offset);
    rows++;
  }

  /** Adds a row of a key table; rows come in the order of their keys. */
  public void write(InternalRow row, int offset, long sequence, byte kind) throws IOException {
    try {
      output.write(row, offset, sequence, kind);
    } catch (IOException | RuntimeException | FSError failure) {
      throw WriteFailures.named(path.toString(), failure);
    }
    collect(row, offset);
    rows++;
    deletes += kind == DELETE || kind == UPDATE_BEFORE ? 1 : 0;
    firstSequence = firstSequence < 0 ? sequence : Math.min(firstSequence, sequence);
    lastSequence = Math.max(lastSequence, sequence);
  }

  private void collect(InternalRow row, int offset) {
    if (keys != null) {
      keys.add(row, offset);
    }
  }

  /** The keys of a finished file for the index database, null if there are none. */
  byte[] keys() {
    return keys == null ? null : keys.finish();
  }

  long rows() {
    return rows;
  }

  /** Tells whether the file has its target size. */
  boolean full() throws IOException {
    return rows % CHECKED_ROWS == 0 && output.full();
  }

  /** Remembers the file's bounds by key: the first and the last row, copied by the caller. */
  void bounds(InternalRow first, InternalRow last) {
    firstKey = first;
    lastKey = last;
  }

  /** Finishes the file and describes it for the commit. */
  public ObjectNode finish() throws IOException {
    try {
      output.close();
    } catch (IOException | RuntimeException | FSError failure) {
      throw WriteFailures.named(path.toString(), failure);
    }
    ObjectNode file = JsonNodeFactory.instance.objectNode();
    file.put("name", path.getName())
        .put("size", files.getFileStatus(path).getLen())
        .put("rows", rows);
    if (spec.keyed()) {
      key(file.putArray("min_key"), firstKey);
      key(file.putArray("max_key"), lastKey);
    } else {
      file.putArray("min_key");
      file.putArray("max_key");
    }
    file.put("min_sequence", spec.keyed() ? firstSequence : 0)
        .put("max_sequence", spec.keyed() ? lastSequence : 0)
        .put("delete_rows", deletes);
    output.statistics(file.putObject("stats"), rows);
    return file;
  }

  private void key(ArrayNode bound, InternalRow row) {
    int[] keys = spec.trimmedKey();
    for (int i = 0; i < keys.length; i++) {
      bound.add(Values.toJson(row, i, spec.fields().get(keys[i]).type()));
    }
  }

  /** Closes the file whatever state it is in, and deletes it. */
  void discard() throws IOException {
    try {
      output.abandon();
    } finally {
      files.delete(path, false);
    }
  }
}

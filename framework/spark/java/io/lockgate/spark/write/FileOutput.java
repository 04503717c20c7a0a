package io.lockgate.spark.write;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFileSystem;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;

/** The bytes of one data file in one format. */
interface FileOutput {
  /** Opens a file in the format of the table's new files. */
  static FileOutput open(WriteSpec spec, Configuration conf, Path path) throws IOException {
    return spec.format().equals(ParquetOutput.FORMAT)
        ? new ParquetOutput(spec, conf, path)
        : new OrcOutput(spec, conf, path);
  }

  /**
   * Hadoop's local file system would put a hidden checksum file next to each data file; tables have
   * none.
   */
  static FileSystem raw(FileSystem files) {
    return files instanceof ChecksumFileSystem checked ? checked.getRawFileSystem() : files;
  }

  /** Adds a row, whose table columns begin at {@code offset}. */
  void write(InternalRow row, int offset) throws IOException;

  /** Adds a row of a key table. */
  void write(InternalRow row, int offset, long sequence, byte kind) throws IOException;

  /** Tells whether the file has its target size. */
  boolean full() throws IOException;

  /** Finishes the file. */
  void close() throws IOException;

  /** The statistics of a finished file, for the manifest. */
  void statistics(ObjectNode all, long rows) throws IOException;

  /** Closes the file whatever state it is in; its bytes are worth nothing. */
  void abandon() throws IOException;
}

package io.lockgate.spark.write;

import java.io.IOException;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSError;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * The file system that one data file is written through: it closes the file where its writer, which
 * failed, does not.
 *
 * <p>It is handed to the writer of a format and registered nowhere.
 */
final class OneFile extends FilterFileSystem {
  private FSDataOutputStream opened;

  OneFile(FileSystem files) {
    super(files);
  }

  @Override
  public FSDataOutputStream create(
      Path path,
      FsPermission permission,
      boolean overwrite,
      int bufferSize,
      short replication,
      long blockSize,
      Progressable progress)
      throws IOException {
    opened = fs.create(path, permission, overwrite, bufferSize, replication, blockSize, progress);
    return opened;
  }

  /** Ends a writer in whatever state it is, and closes the file; its bytes are worth nothing. */
  void abandon(AutoCloseable writer) {
    closeQuietly(writer);
    closeQuietly(opened);
  }

  private static void closeQuietly(AutoCloseable closing) {
    try {
      if (closing != null) {
        closing.close();
      }
    } catch (Exception | FSError ignored) {
      // The file is deleted: what became of it does not matter.
    }
  }
}

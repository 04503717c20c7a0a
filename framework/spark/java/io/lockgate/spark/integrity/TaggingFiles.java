package io.lockgate.spark.integrity;

import java.io.IOException;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;
import org.apache.orc.CompressionKind;
import org.apache.orc.Writer;
import org.apache.orc.impl.KeyProvider;

/**
 * The file system that one encrypted ORC file is written through: it adds the file's integrity
 * tags.
 *
 * <p>It is handed to ORC's writer and registered nowhere.
 */
public final class TaggingFiles extends FilterFileSystem {
  private final CompressionKind compression;
  private final KeyProvider keys;
  private TaggingOutput output;

  public TaggingFiles(FileSystem files, CompressionKind compression, KeyProvider keys) {
    super(files);
    this.compression = compression;
    this.keys = keys;
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
    FSDataOutputStream file =
        fs.create(path, permission, overwrite, bufferSize, replication, blockSize, progress);
    output = new TaggingOutput(path, file, compression, keys);
    return new FSDataOutputStream(output, null);
  }

  /** To be called between writes: passes on the stripes that are complete. */
  public void pass(Writer writer) throws IOException {
    if (output.waiting()) {
      output.pass(writer.getStripes());
    }
  }

  /** Gives up the file. */
  public void abandon() throws IOException {
    if (output != null) {
      output.abandon();
    }
  }
}

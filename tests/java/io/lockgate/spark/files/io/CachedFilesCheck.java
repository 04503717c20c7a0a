package io.lockgate.spark.files.io;

import java.io.IOException;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.OrcFile;
import org.apache.orc.Reader;
import org.apache.orc.RecordReader;

/** Reads a file on this disk as if it were in a store, by the cache of ranges. */
public final class CachedFilesCheck {
  private CachedFilesCheck() {}

  /** A store: its files are on this disk, and it counts how often they are opened. */
  private static final class Store extends FilterFileSystem {
    private final Path stored;
    private int opened;

    Store(Path stored, Configuration conf) throws IOException {
      super(new RawLocalFileSystem());
      fs.initialize(java.net.URI.create("file:///"), conf);
      this.stored = stored;
    }

    @Override
    public FSDataInputStream open(Path path, int bufferSize) throws IOException {
      opened++;
      return fs.open(stored, bufferSize);
    }
  }

  /**
   * Reads the whole file, and random ranges of it that must agree; returns how often the store was
   * asked, and the hash of the bytes.
   */
  public static String read(String stored, String address, String folder, String size)
      throws Exception {
    Configuration conf = new Configuration(false);
    conf.set("fs.lockgate.cache.folder", folder);
    conf.set("fs.lockgate.cache.size", size);
    Path path = new Path(address);
    Store store = new Store(new Path(stored), conf);
    int length = (int) store.getFileStatus(new Path(stored)).getLen();
    FileSystem cached = CachedFiles.over(store, conf, path, length);
    byte[] whole = new byte[length];
    try (FSDataInputStream file = cached.open(path)) {
      file.readFully(0, whole);
    }
    Random chance = new Random(5);
    try (FSDataInputStream file = cached.open(path)) {
      for (int i = 0; i < 200; i++) {
        int from = chance.nextInt(length);
        byte[] part = new byte[Math.min(length - from, 1 + chance.nextInt(3 << 20))];
        file.seek(from);
        file.readFully(part);
        if (!java.util.Arrays.equals(whole, from, from + part.length, part, 0, part.length)) {
          throw new IllegalStateException("other bytes at " + from);
        }
      }
      if (file.read(length, new byte[1], 0, 1) != -1) {
        throw new IllegalStateException("bytes behind the end");
      }
    }
    byte[] hash = MessageDigest.getInstance("SHA-256").digest(whole);
    return store.opened + " " + HexFormat.of().formatHex(hash);
  }

  /**
   * Reads an ORC file as ORC's own reader does; returns the rows, and how often the store was
   * asked.
   */
  public static String rows(String stored, String address, String folder) throws IOException {
    Configuration conf = new Configuration(false);
    conf.set("fs.lockgate.cache.folder", folder);
    Path path = new Path(address);
    Store store = new Store(new Path(stored), conf);
    long length = store.getFileStatus(new Path(stored)).getLen();
    OrcFile.ReaderOptions options =
        OrcFile.readerOptions(conf)
            .filesystem(CachedFiles.over(store, conf, path, length))
            .maxLength(length);
    long found = 0;
    try (Reader reader = OrcFile.createReader(path, options);
        RecordReader rows = reader.rows()) {
      VectorizedRowBatch batch = reader.getSchema().createRowBatch();
      while (rows.nextBatch(batch)) {
        found += batch.size;
      }
    }
    return found + " " + store.opened;
  }

  /** The file of a block, below the folder. */
  public static String name(String folder, String address, long size, long block)
      throws IOException {
    java.nio.file.Path root = java.nio.file.Path.of(folder);
    return root.relativize(new RangeCache(root, 1 << 30).path(address, size, block)).toString();
  }

  /** For a JVM of its own, as another process that shares the folder. */
  public static void main(String[] arguments) throws Exception {
    System.out.println(read(arguments[0], arguments[1], arguments[2], arguments[3]));
  }
}

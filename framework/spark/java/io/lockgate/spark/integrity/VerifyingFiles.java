package io.lockgate.spark.integrity;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.function.IntFunction;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FileRange;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.orc.impl.KeyProvider;

/**
 * The file system that one ORC file is read through: it checks the file's integrity tags, and
 * passes on bytes that match.
 *
 * <p>It is handed to ORC's reader and registered nowhere.
 */
public final class VerifyingFiles extends FilterFileSystem {
  private final Integrity integrity;
  private final KeyProvider keys;
  private final long size;
  private StoredTail tail;
  private VerifiedFile verified;

  public VerifyingFiles(FileSystem files, Integrity integrity, KeyProvider keys, long size) {
    super(files);
    this.integrity = integrity;
    this.keys = keys;
    this.size = size;
  }

  @Override
  public FSDataInputStream open(Path path, int bufferSize) throws IOException {
    FSDataInputStream file = fs.open(path, bufferSize);
    if (size == 0) {
      return file;
    }
    try {
      if (tail == null) {
        StoredTail read = StoredTail.read(path, file, size);
        verified = integrity.authenticate(read, keys);
        tail = read;
      }
      return new FSDataInputStream(new Input(file));
    } catch (IOException | RuntimeException failure) {
      file.close();
      throw failure;
    }
  }

  /**
   * The tail and small files are served from memory; the rest is read, and checked where the file
   * has tags.
   */
  private final class Input extends FSInputStream {
    private final FSDataInputStream file;
    private long position;

    Input(FSDataInputStream file) {
      this.file = file;
    }

    @Override
    public void readFully(long from, byte[] buffer, int offset, int length) throws IOException {
      validatePositionedReadArgs(from, buffer, offset, length);
      if (from > size - length) {
        throw new java.io.EOFException("no " + length + " bytes at " + from + " of " + size);
      } else if (verified != null) {
        verified.readFully(file, from, buffer, offset, length);
      } else if (from >= tail.held()) {
        tail.copy(from, buffer, offset, length);
      } else {
        file.readFully(from, buffer, offset, length);
      }
    }

    @Override
    public void readVectored(List<? extends FileRange> ranges, IntFunction<ByteBuffer> allocate)
        throws IOException {
      if (verified != null) {
        verified.readVectored(file, ranges, allocate);
      } else {
        file.readVectored(ranges, allocate);
      }
    }

    @Override
    public int read(long from, byte[] buffer, int offset, int length) throws IOException {
      if (length == 0 || from >= size) {
        return length == 0 ? 0 : -1;
      }
      int count = (int) Math.min(length, size - from);
      count = verified == null ? count : verified.readable(from, count);
      readFully(from, buffer, offset, count);
      return count;
    }

    @Override
    public int read(byte[] buffer, int offset, int length) throws IOException {
      int count = read(position, buffer, offset, length);
      position += Math.max(0, count);
      return count;
    }

    @Override
    public int read() throws IOException {
      byte[] one = new byte[1];
      return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
    }

    @Override
    public void seek(long to) {
      position = to;
    }

    @Override
    public long getPos() {
      return position;
    }

    @Override
    public boolean seekToNewSource(long target) {
      return false;
    }

    @Override
    public void close() throws IOException {
      file.close();
    }
  }
}

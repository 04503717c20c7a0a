package io.lockgate.spark.lookup;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.apache.arrow.memory.util.MemoryUtil;
import org.apache.spark.storage.StorageUtils;
import org.apache.spark.unsafe.Platform;

/** A file of 64-bit words, mapped; must not be read after it was closed. */
final class Words implements AutoCloseable {
  /**
   * A map has at most 2 GB: they overlap, so that a row of up to 1 GB lies in one of them whole.
   */
  private static final int STEP_BITS = 30;

  private static final long STEP = 1L << STEP_BITS;

  /** Words that can be read behind an address. */
  static final long MOST_TOGETHER = STEP / Long.BYTES - 1;

  private final MappedByteBuffer[] maps;
  private final long[] addresses;
  private final long count;

  Words(Path file) throws IOException {
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
      long size = channel.size();
      count = size / Long.BYTES;
      maps = new MappedByteBuffer[(int) ((size + STEP - 1) >>> STEP_BITS)];
      addresses = new long[maps.length];
      for (int i = 0; i < maps.length; i++) {
        long start = i * STEP;
        maps[i] =
            channel.map(FileChannel.MapMode.READ_ONLY, start, Math.min(size - start, 2 * STEP - 1));
        addresses[i] = MemoryUtil.getByteBufferAddress(maps[i]);
      }
    }
  }

  /** Returns how many words there are. */
  long count() {
    return count;
  }

  long get(long index) {
    return Platform.getLong(null, address(index));
  }

  /**
   * Returns where a word lies in memory, and {@link #MOST_TOGETHER} words of the file from it on.
   */
  long address(long index) {
    long at = index * Long.BYTES;
    return addresses[(int) (at >>> STEP_BITS)] + (at & (STEP - 1));
  }

  @Override
  public void close() {
    for (ByteBuffer map : maps) {
      StorageUtils.dispose(map);
    }
  }
}

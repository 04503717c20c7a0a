package io.lockgate.spark.lookup;

import io.lockgate.spark.bridge.Failure;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * One layer of a cache in mapped files: keys sorted by hash, each with its value. {@code
 * lookup/cache/layers.py} has the format.
 */
final class CacheLayer implements AutoCloseable {
  private static final long MISSING = -1;

  /** One in so many hashes is held in memory: those between two of them are a page. */
  private static final int STRIDE = 512;

  /** The most numbers, as a rule, between a hash that is held and where it is guessed. */
  private static final int NEAR = 8;

  private final Path folder;
  private final Words hashes;
  private final Words keys;
  private final Words keyEnds;
  private final Words values;
  private final Words valueEnds;
  private final long count;
  private final long keyWords;

  /**
   * The number of keys for each unit of hash: hashes lie evenly, so that the place of one can be
   * guessed.
   */
  private final double density;

  private final long[] held;

  CacheLayer(Path folder, String name) throws IOException {
    this.folder = folder;
    hashes = new Words(folder.resolve(name + ".hashes"));
    keys = new Words(folder.resolve(name + ".keys"));
    Path ends = folder.resolve(name + ".key-ends");
    keyEnds = Files.exists(ends) ? new Words(ends) : null;
    values = new Words(folder.resolve(name + ".values"));
    valueEnds = new Words(folder.resolve(name + ".value-ends"));
    count = hashes.count();
    keyWords = count == 0 ? 0 : keys.count() / count;
    // Keys of other spaces sort behind, with the top bit set.
    density = firstAtLeast(Long.MIN_VALUE, 0, count) / (double) Long.MAX_VALUE;
    held = new long[Math.toIntExact((count + STRIDE - 1) / STRIDE)];
    Arrays.setAll(held, i -> hashes.get((long) i * STRIDE));
  }

  /** The bytes of all files. */
  long bytes() {
    long ends = keyEnds == null ? 0 : keyEnds.count();
    return Long.BYTES * (count + keys.count() + ends + values.count() + valueEnds.count());
  }

  /** Finds a key; true if the layer has it, with an empty value if the key was deleted. */
  boolean find(KeyEncoder key, Value out) {
    long at = position(key);
    if (at == MISSING) {
      return false;
    }
    long start = valueEnds.get(at);
    long length = valueEnds.get(at + 1) - start;
    if (length > Words.MOST_TOGETHER) {
      throw Failure.inTask(
          "LookupCacheError: the rows of one key take "
              + length * Long.BYTES
              + " bytes in the lookup cache "
              + folder
              + ", more than the JVM can read: set lookup.in-jvm=false",
          null);
    } else if (length == 0) {
      out.set(null, 0);
    } else {
      out.set(null, values.address(start));
    }
    return true;
  }

  private long position(KeyEncoder key) {
    long hash = key.hash();
    for (long at = firstFrom(hash); at < count && hashes.get(at) == hash; at++) {
      if (isAt(key, at)) {
        return at;
      }
    }
    return MISSING;
  }

  private boolean isAt(KeyEncoder key, long at) {
    long start = keyEnds == null ? at * keyWords : keyEnds.get(at);
    long length = keyEnds == null ? keyWords : keyEnds.get(at + 1) - start;
    if (length != key.count() - 1) {
      return false;
    }
    for (int i = 0; i < length; i++) {
      if (keys.get(start + i) != key.word(i + 1)) {
        return false;
      }
    }
    return true;
  }

  /**
   * The first position whose hash is not less: guessed between two hashes that are held, to about a
   * cache line, then searched for with steps that double.
   */
  private long firstFrom(long hash) {
    int page = pageOf(hash);
    if (page < 0) {
      return 0;
    }
    long first = (long) page * STRIDE;
    long end = Math.min(count, first + STRIDE);
    long at = clamp(first + (long) ((hash - held[page]) * density), first, end - 1);
    at = clamp(at + (long) ((hash - hashes.get(at)) * density), first, end - 1);
    long low = at;
    long high = at;
    long step = 1;
    while (low > first && Long.compareUnsigned(hashes.get(low), hash) >= 0) {
      high = low;
      low = Math.max(first, low - step);
      step *= 2;
    }
    step = 1;
    while (high < end && Long.compareUnsigned(hashes.get(high), hash) < 0) {
      low = high;
      high = Math.min(end, high + step);
      step *= 2;
    }
    return firstAtLeast(hash, low, high);
  }

  /** The page whose first hash is less, and the next page's is not; below 0 if none is less. */
  private int pageOf(long hash) {
    int guess = (int) (hash * density / STRIDE);
    int low = Math.max(0, Math.min(held.length, guess) - NEAR);
    int high = Math.min(held.length, Math.max(0, guess) + NEAR);
    if (low > 0 && Long.compareUnsigned(held[low - 1], hash) >= 0) {
      low = 0;
    }
    if (high < held.length && Long.compareUnsigned(held[high], hash) < 0) {
      high = held.length;
    }
    while (low < high) {
      int middle = low + high >>> 1;
      if (Long.compareUnsigned(held[middle], hash) < 0) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low - 1;
  }

  private static long clamp(long at, long first, long last) {
    return Math.max(first, Math.min(last, at));
  }

  private long firstAtLeast(long hash, long from, long to) {
    while (from < to) {
      long middle = from + to >>> 1;
      if (Long.compareUnsigned(hashes.get(middle), hash) < 0) {
        from = middle + 1;
      } else {
        to = middle;
      }
    }
    return from;
  }

  @Override
  public void close() {
    for (Words words : new Words[] {hashes, keys, keyEnds, values, valueEnds}) {
      if (words != null) {
        words.close();
      }
    }
  }
}

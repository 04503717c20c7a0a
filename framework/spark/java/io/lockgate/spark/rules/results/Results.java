package io.lockgate.spark.rules.results;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;

/**
 * The kept results of this process, in memory only; those that nobody has used longest go first.
 */
final class Results {
  /** About what a key and its plan take. */
  private static final long KEY_BYTES = 16 << 10;

  /** Those of all sessions: a key names its user, and all else that rows depend on. */
  static final Results SHARED = new Results();

  private final Map<ResultKey, Kept> kept = new LinkedHashMap<>(16, 0.75f, true);
  private long bytes;

  /**
   * The rows of a query.
   *
   * @param at milliseconds since 1970 at which they were computed
   */
  record Kept(InternalRow[] rows, long bytes, long at) {}

  synchronized Optional<Kept> find(ResultKey key) {
    return Optional.ofNullable(kept.get(key));
  }

  /** Keeps rows, unless they alone take more than {@code most} bytes or are no bytes. */
  synchronized void keep(ResultKey key, InternalRow[] rows, long most) {
    long size = KEY_BYTES;
    for (InternalRow row : rows) {
      if (!(row instanceof UnsafeRow unsafe)) {
        return;
      }
      size += unsafe.getSizeInBytes();
    }
    if (size > most) {
      return;
    }
    Kept before = kept.put(key, new Kept(rows.clone(), size, System.currentTimeMillis()));
    bytes += size - (before == null ? 0 : before.bytes());
    Iterator<Kept> oldest = kept.values().iterator();
    while (bytes > most && oldest.hasNext()) {
      bytes -= oldest.next().bytes();
      oldest.remove();
    }
  }

  synchronized long bytes() {
    return bytes;
  }

  synchronized int size() {
    return kept.size();
  }
}

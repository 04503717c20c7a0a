package io.lockgate.spark.index;

/** The encoded keys of one column: runs of ascending keys, each of one block. */
final class KeyRuns {
  /** Of more bytes nothing is kept: the driver then reads the column. */
  static final long MOST_BYTES = 48L << 20;

  // Readers take no longer runs.
  private static final int MOST_KEYS = 1 << 16;
  private static final int HEAD_BYTES = 17;

  private final Bytes bytes = new Bytes(64);
  private int runs;

  /** Adds the first keys of an array, which ascend and are each there once. */
  void add(int block, long[] keys, int count) {
    for (int from = 0; from < count && !isFull(); from += MOST_KEYS) {
      run(block, keys, from, Math.min(count, from + MOST_KEYS));
    }
  }

  private void run(int block, long[] keys, int from, int end) {
    long widest = 0;
    for (int i = from + 1; i < end; i++) {
      widest |= keys[i] - keys[i - 1];
    }
    int width = (Long.SIZE - Long.numberOfLeadingZeros(widest) + 7) / 8;
    bytes.putInt(block);
    bytes.putInt(end - from);
    bytes.put(width);
    bytes.putLong(keys[from]);
    for (int i = from + 1; i < end; i++) {
      bytes.put(keys[i] - keys[i - 1], width);
    }
    runs++;
  }

  boolean isFull() {
    return bytes.size() + HEAD_BYTES + (long) MOST_KEYS * Long.BYTES > MOST_BYTES;
  }

  int size() {
    return bytes.size();
  }

  int runs() {
    return runs;
  }

  void write(Bytes out) {
    out.put(bytes.array(), bytes.size());
  }
}

package io.lockgate.spark.index;

import java.util.Arrays;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Keys of any size, by open addressing. It is exact, and nobody can know beforehand which keys
 * meet: the factor by which they are spread is another one in each JVM.
 */
final class LongSet implements KeySet {
  // A file in the making has one megabyte for each column; a task has up to 16 such files.
  private static final int MOST_KEYS = 1 << 16;
  private static final int LEAST_SLOTS = 1 << 8;
  private static final int MOST_SLOTS = 2 * MOST_KEYS;
  private static final long SPREAD = ThreadLocalRandom.current().nextLong() | 1;

  // A key and one, so that 0 is a free slot.
  private long[] slots;
  private int shift;
  private int size;

  LongSet() {
    start(LEAST_SLOTS);
  }

  private void start(int count) {
    slots = new long[count];
    shift = Long.SIZE - Integer.numberOfTrailingZeros(count);
  }

  @Override
  public void add(long key) {
    if (put(slots, shift, key + 1) && ++size > slots.length / 2) {
      grow();
    }
  }

  private static boolean put(long[] slots, int shift, long stored) {
    int at = (int) (stored * SPREAD >>> shift);
    while (slots[at] != 0) {
      if (slots[at] == stored) {
        return false;
      }
      at = at + 1 & slots.length - 1;
    }
    slots[at] = stored;
    return true;
  }

  private void grow() {
    long[] smaller = slots;
    start(2 * smaller.length);
    for (long stored : smaller) {
      if (stored != 0) {
        put(slots, shift, stored);
      }
    }
  }

  @Override
  public boolean isFull() {
    return size >= MOST_KEYS;
  }

  @Override
  public void drain(int block, KeyRuns runs) {
    long[] keys = new long[size];
    int count = 0;
    for (long stored : slots) {
      if (stored != 0) {
        keys[count++] = stored - 1;
      }
    }
    Arrays.sort(keys);
    runs.add(block, keys, count);
    if (slots.length > MOST_SLOTS) { // one text had that many words
      start(LEAST_SLOTS);
    } else {
      Arrays.fill(slots, 0);
    }
    size = 0;
  }
}

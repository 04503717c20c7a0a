package io.lockgate.spark.index;

import java.util.Arrays;

/**
 * Keys below 2^24, one bit each; only pages with a key take memory, which later blocks use again.
 */
final class PagedBits implements KeySet {
  private static final int PAGES = 1 << 8;
  private static final int PAGE_BITS = 16;
  private static final int PAGE_WORDS = 1 << PAGE_BITS - 6;

  private final long[][] pages = new long[PAGES][];
  private final boolean[] used = new boolean[PAGES];

  @Override
  public void add(long key) {
    int number = (int) (key >>> PAGE_BITS);
    long[] page = pages[number];
    if (page == null) {
      page = pages[number] = new long[PAGE_WORDS];
    }
    used[number] = true;
    page[(int) key >>> 6 & PAGE_WORDS - 1] |= 1L << key;
  }

  @Override
  public boolean isFull() {
    return false;
  }

  @Override
  public void drain(int block, KeyRuns runs) {
    for (int number = 0; number < PAGES; number++) {
      if (used[number]) {
        long[] keys = keys(number);
        runs.add(block, keys, keys.length);
        Arrays.fill(pages[number], 0);
        used[number] = false;
      }
    }
  }

  private long[] keys(int number) {
    int size = 0;
    for (long word : pages[number]) {
      size += Long.bitCount(word);
    }
    long[] keys = new long[size];
    int count = 0;
    for (int at = 0; at < PAGE_WORDS; at++) {
      for (long word = pages[number][at]; word != 0; word &= word - 1) {
        keys[count++] = (long) number << PAGE_BITS | at << 6 | Long.numberOfTrailingZeros(word);
      }
    }
    return keys;
  }
}

package io.lockgate.spark.merge.folds;

import java.util.Arrays;

/**
 * The rows of those keys of a batch that have several, from old to new, as a page and a number in
 * it; a key is a number here, and has a row of the batch as its place.
 */
public final class Versions {
  private int[] positions = new int[16];
  private int[] ends = new int[16];
  private int[] pages = new int[64];
  private int[] rows = new int[64];
  private int keys;
  private int size;

  /** Adds a row of the key that is being put together. */
  public void add(int page, int row) {
    if (size == rows.length) {
      pages = Arrays.copyOf(pages, 2 * size);
      rows = Arrays.copyOf(rows, 2 * size);
    }
    pages[size] = page;
    rows[size++] = row;
  }

  /** Ends the key whose rows were added last. */
  public void end(int position) {
    if (keys == ends.length) {
      positions = Arrays.copyOf(positions, 2 * keys);
      ends = Arrays.copyOf(ends, 2 * keys);
    }
    positions[keys] = position;
    ends[keys++] = size;
  }

  public void clear() {
    keys = 0;
    size = 0;
  }

  public int keys() {
    return keys;
  }

  int size() {
    return size;
  }

  int position(int key) {
    return positions[key];
  }

  /** The number of a key's oldest row. */
  int first(int key) {
    return key == 0 ? 0 : ends[key - 1];
  }

  /** The number of a key's newest row. */
  int last(int key) {
    return ends[key] - 1;
  }

  int page(int version) {
    return pages[version];
  }

  int row(int version) {
    return rows[version];
  }
}

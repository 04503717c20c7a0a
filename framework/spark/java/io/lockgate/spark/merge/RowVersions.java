package io.lockgate.spark.merge;

import java.util.Arrays;

/** The rows of one key, by their pages and indexes. */
final class RowVersions {
  private MergePage[] pages = new MergePage[4];
  private int[] rows = new int[4];
  private int size;

  void add(MergePage page, int row) {
    if (size == rows.length) {
      pages = Arrays.copyOf(pages, 2 * size);
      rows = Arrays.copyOf(rows, 2 * size);
    }
    pages[size] = page;
    rows[size++] = row;
  }

  /** Brings the rows from old to new; those of equal age stay in their order. */
  void sort(RowOrder ages) {
    for (int i = 1; i < size; i++) {
      MergePage page = pages[i];
      int row = rows[i];
      int to = i;
      while (to > 0 && ages.compare(pages[to - 1], rows[to - 1], page, row) > 0) {
        pages[to] = pages[to - 1];
        rows[to] = rows[--to];
      }
      pages[to] = page;
      rows[to] = row;
    }
  }

  int size() {
    return size;
  }

  MergePage page(int at) {
    return pages[at];
  }

  int row(int at) {
    return rows[at];
  }

  /** Tells whether one of the rows is a deletion. */
  boolean hasGone() {
    for (int i = 0; i < size; i++) {
      if (pages[i].isGone(rows[i])) {
        return true;
      }
    }
    return false;
  }

  boolean holds(MergePage page) {
    for (int i = 0; i < size; i++) {
      if (pages[i] == page) {
        return true;
      }
    }
    return false;
  }

  void clear() {
    Arrays.fill(pages, 0, size, null);
    size = 0;
  }
}

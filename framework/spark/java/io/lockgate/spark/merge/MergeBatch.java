package io.lockgate.spark.merge;

import io.lockgate.spark.batches.PickedVector;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Rows picked from pages, as Spark's columns; no value is copied. */
public final class MergeBatch {
  private final List<MergePage> pages = new ArrayList<>();
  private final int firstColumn;
  private final int[] sources;
  private final int[] rows;
  private final PickedVector[] columns;
  private final ColumnarBatch output;
  private final MadePage made;
  private int count;

  /**
   * {@code types} are those of the pages' columns from {@code firstColumn} on, which the batch has.
   */
  public MergeBatch(DataType[] types, int firstColumn, int mostRows) {
    this.firstColumn = firstColumn;
    this.sources = new int[mostRows];
    this.rows = new int[mostRows];
    this.columns = new PickedVector[types.length - firstColumn];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = new PickedVector(types[firstColumn + i], sources, rows);
    }
    this.output = new ColumnarBatch(columns);
    this.made = new MadePage(types, firstColumn, mostRows);
  }

  boolean isFull() {
    return count == rows.length;
  }

  int size() {
    return count;
  }

  int room() {
    return rows.length - count;
  }

  /** Adds a row. */
  void pick(MergePage page, int row) {
    if (!page.isPicked()) {
      page.setIndex(pages.size());
      pages.add(page);
    }
    sources[count] = page.index();
    rows[count++] = row;
  }

  /**
   * Adds the rows of a page from {@code row} to before {@code end}, deletions only if they are
   * {@code kept}; there must be room for all.
   */
  void pickAll(MergePage page, int row, int end, boolean kept) {
    for (int i = row; i < end; i++) {
      if (kept || !page.isGone(i)) {
        pick(page, i);
      }
    }
  }

  /** Adds a row that an engine put together. */
  void make(RowEngine engine) {
    pick(made, made.add(engine));
  }

  /** Forgets the rows; their pages may be filled again. */
  void clear() {
    pages.forEach(page -> page.setIndex(-1));
    pages.clear();
    made.clear();
    count = 0;
  }

  /** The rows, until the next {@link #clear()}. */
  ColumnarBatch output() {
    for (int i = 0; i < columns.length; i++) {
      ColumnVector[] vectors = new ColumnVector[pages.size()];
      for (int page = 0; page < vectors.length; page++) {
        vectors[page] = pages.get(page).column(firstColumn + i);
      }
      columns[i].bind(vectors, count);
    }
    output.setNumRows(count);
    return output;
  }
}

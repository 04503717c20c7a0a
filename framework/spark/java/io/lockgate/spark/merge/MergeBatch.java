package io.lockgate.spark.merge;

import io.lockgate.spark.files.batches.PickedVector;
import io.lockgate.spark.merge.folds.Fold;
import io.lockgate.spark.merge.folds.GroupOrder;
import io.lockgate.spark.merge.folds.Versions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Rows picked from pages, as Spark's columns; no value is copied. Keys that have several rows may
 * be merged a column at a time, when the batch is full: each column then has picks of its own.
 */
public final class MergeBatch {
  private final List<MergePage> pages = new ArrayList<>();
  private final int firstColumn;
  private final int[] sources;
  private final int[] rows;
  private final PickedVector[] columns;
  private final ColumnarBatch output;
  private final CombinedPage made;
  private final Versions versions = new Versions();
  // By column; null where no keys are merged by columns.
  private Fold[] folds;
  private List<GroupOrder> groups;
  private int[][] foldSources;
  private int[][] foldRows;
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
    this.made = new CombinedPage(types, firstColumn, mostRows);
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

  /**
   * Says how columns are merged: {@code columns} has a fold for each column of the batch, {@code
   * orders} are those of the sequence groups that they are in.
   */
  void mergeBy(Fold[] columns, List<GroupOrder> orders) {
    folds = columns;
    groups = orders;
    foldSources = new int[columns.length][sources.length];
    foldRows = new int[columns.length][rows.length];
    for (int i = 0; i < columns.length; i++) {
      this.columns[i].pickBy(foldSources[i], foldRows[i]);
    }
  }

  int firstColumn() {
    return firstColumn;
  }

  int mostRows() {
    return rows.length;
  }

  /** Adds a row. */
  void pick(MergePage page, int row) {
    note(page);
    sources[count] = page.index();
    rows[count++] = row;
  }

  private void note(MergePage page) {
    if (!page.isPicked()) {
      page.setIndex(pages.size());
      pages.add(page);
    }
  }

  /** Adds the row that the columns' merges make of a key's rows, from old to new. */
  void merge(RowVersions key) {
    for (int i = 0; i < key.size(); i++) {
      note(key.page(i));
      versions.add(key.page(i).index(), key.row(i));
    }
    versions.end(count++);
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
    if (versions.keys() > 0) {
      versions.clear();
      for (Fold fold : folds) {
        fold.clear();
      }
    }
    count = 0;
  }

  /** The rows, until the next {@link #clear()}. */
  ColumnarBatch output() {
    if (versions.keys() > 0) {
      groups.forEach(group -> group.prepare(versions, this::vectors));
    }
    for (int i = 0; i < columns.length; i++) {
      ColumnVector[] vectors = vectors(firstColumn + i);
      columns[i].bind(folds == null ? vectors : merged(i, vectors), count);
    }
    output.setNumRows(count);
    return output;
  }

  /** The vectors of a column of the pages. */
  private ColumnVector[] vectors(int column) {
    ColumnVector[] vectors = new ColumnVector[pages.size()];
    for (int page = 0; page < vectors.length; page++) {
      vectors[page] = pages.get(page).column(column);
    }
    return vectors;
  }

  /** Sets a column's own picks; returns the vectors that they are of. */
  private ColumnVector[] merged(int column, ColumnVector[] vectors) {
    System.arraycopy(sources, 0, foldSources[column], 0, count);
    System.arraycopy(rows, 0, foldRows[column], 0, count);
    if (versions.keys() == 0) {
      return vectors;
    }
    folds[column].fold(versions, vectors, foldSources[column], foldRows[column]);
    ColumnVector computed = folds[column].made();
    if (computed == null) {
      return vectors;
    }
    ColumnVector[] all = Arrays.copyOf(vectors, vectors.length + 1);
    all[vectors.length] = computed;
    return all;
  }
}

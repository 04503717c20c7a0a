package io.lockgate.spark.merge;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatchRow;

/**
 * Some consecutive rows of an input of a merge; it stays as it is until its input is given it back.
 */
public class MergePage {
  private static final byte UPDATE_BEFORE = 1;
  private static final byte DELETE = 3;

  private final ColumnVector[] columns;
  private final ColumnarBatchRow first;
  private final ColumnarBatchRow second;
  private final long[] prefixes;
  private final boolean[] gone;
  private final byte[] kinds;
  private boolean exact;
  private boolean anyGone;
  private int rows;
  // Its place among the pages of the batch that is being put together, or below 0.
  private int index = -1;

  public MergePage(ColumnVector[] columns, int mostRows) {
    this.columns = columns;
    this.first = new ColumnarBatchRow(columns);
    this.second = new ColumnarBatchRow(columns);
    this.prefixes = new long[mostRows];
    this.gone = new boolean[mostRows];
    this.kinds = new byte[mostRows];
  }

  /**
   * Takes note of the rows that the columns hold now; {@code keys} are the first columns, {@code
   * kind} is another.
   */
  public final void fill(int count, int keys, int kind) {
    rows = count;
    exact = OrderPrefix.fill(columns[0], count, prefixes) && keys == 1;
    ColumnVector column = columns[kind];
    anyGone = false;
    for (int row = 0; row < count; row++) {
      byte change = column.getByte(row);
      kinds[row] = change;
      gone[row] = change == UPDATE_BEFORE || change == DELETE;
      anyGone |= gone[row];
    }
  }

  final int rows() {
    return rows;
  }

  final ColumnVector column(int at) {
    return columns[at];
  }

  /** A number that orders rows as their keys do, but for rows of equal numbers. */
  final long prefix(int row) {
    return prefixes[row];
  }

  final long[] prefixes() {
    return prefixes;
  }

  /** Tells whether rows of equal numbers have equal keys. */
  final boolean exact() {
    return exact;
  }

  /** Tells whether a row deletes its key. */
  final boolean isGone(int row) {
    return anyGone && gone[row];
  }

  final byte kind(int row) {
    return kinds[row];
  }

  /** A row that stays, as long as the page does. */
  final InternalRow lasting(int row) {
    ColumnarBatchRow lasting = new ColumnarBatchRow(columns);
    lasting.rowId = row;
    return lasting;
  }

  final int index() {
    return index;
  }

  /** Tells whether rows of it are in the batch that is being put together. */
  final boolean isPicked() {
    return index >= 0;
  }

  final void setIndex(int at) {
    index = at;
  }

  /** The row, until this is asked again. */
  final InternalRow first(int row) {
    first.rowId = row;
    return first;
  }

  /** Another row at the same time. */
  final InternalRow second(int row) {
    second.rowId = row;
    return second;
  }
}

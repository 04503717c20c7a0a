package io.lockgate.spark.scan;

import io.lockgate.spark.files.batches.MappedBatches;
import io.lockgate.spark.files.batches.PickedVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * The rows that no kind calls gone. The kind is the last of the columns that are read, and is
 * dropped; no value is copied.
 */
record UpsertedRows(int columns) implements MappedBatches.Step {
  private static final int UPDATE_BEFORE = 1;
  private static final int DELETE = 3;

  @Override
  public ColumnarBatch apply(ColumnarBatch read) {
    int[] rows = new int[read.numRows()];
    int kept = kept(read.column(columns), rows);
    return kept == 0 ? null : picked(read, rows, kept);
  }

  private static int kept(ColumnVector kinds, int[] rows) {
    int kept = 0;
    for (int row = 0; row < rows.length; row++) {
      int kind = kinds.isNullAt(row) ? 0 : kinds.getByte(row);
      if (kind < 0 || kind > DELETE) {
        throw new IllegalStateException("a data file has a row of the unknown kind " + kind);
      }
      if (kind != UPDATE_BEFORE && kind != DELETE) {
        rows[kept++] = row;
      }
    }
    return kept;
  }

  private ColumnarBatch picked(ColumnarBatch read, int[] rows, int kept) {
    ColumnVector[] out = new ColumnVector[columns];
    int[] first = kept < rows.length ? new int[kept] : null;
    for (int i = 0; i < columns; i++) {
      out[i] = read.column(i);
      if (first != null) {
        PickedVector some = new PickedVector(out[i].dataType(), first, rows);
        some.bind(new ColumnVector[] {out[i]}, kept);
        out[i] = some;
      }
    }
    return new ColumnarBatch(out, kept);
  }
}

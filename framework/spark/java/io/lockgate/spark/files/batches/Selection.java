package io.lockgate.spark.files.batches;

import java.util.Arrays;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;

/** Some rows of columns that are filled again and again, as columns; no value is copied. */
public final class Selection {
  private final int[] rows;
  private final PickedVector[] picked;
  private final ColumnVector[][] sources;
  private final ColumnVector[] columns;

  /** A selection from columns that hold {@code most} rows at a time. */
  public Selection(ColumnVector[] all, int most) {
    rows = new int[most];
    picked = new PickedVector[all.length];
    sources = new ColumnVector[all.length][];
    columns = all.clone();
    int[] first = new int[most];
    for (int i = 0; i < all.length; i++) {
      if (!(all[i] instanceof ConstantColumnVector)) {
        picked[i] = new PickedVector(all[i].dataType(), first, rows);
        sources[i] = new ColumnVector[] {all[i]};
        columns[i] = picked[i];
      }
    }
  }

  /** The selected rows. */
  public ColumnVector[] columns() {
    return columns.clone();
  }

  /** The numbers of rows to select, for the caller to fill. */
  public int[] rows() {
    return rows;
  }

  /** Selects the first {@code count} of {@link #rows()}. */
  public void select(int count) {
    for (int i = 0; i < picked.length; i++) {
      if (picked[i] != null) {
        picked[i].bind(sources[i], count);
      }
    }
  }

  /** Selects {@code count} rows by their numbers, or the first ones if there are none. */
  public void select(int[] numbers, int count) {
    if (numbers == null) {
      Arrays.setAll(rows, row -> row);
    } else {
      System.arraycopy(numbers, 0, rows, 0, count);
    }
    select(count);
  }
}

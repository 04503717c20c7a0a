package io.lockgate.spark.merge.folds;

import java.util.function.IntFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnVector;

/**
 * The order of a key's rows in a sequence group, for all keys of a batch; source: Paimon's {@code
 * PartialUpdateMergeFunction}.
 */
public final class GroupOrder {
  private static final byte UNTOUCHED = 0;
  private static final byte NEWER = 1;
  private static final byte LATE = 2;

  private final int[] columns;
  private final Extremes[] values;
  private byte[] states = {};
  private int[] newest = {};

  /** {@code columns} are the ordinals, in pages, of the columns that order the group. */
  public GroupOrder(int[] columns, DataType[] types) {
    this.columns = columns.clone();
    this.values = new Extremes[columns.length];
    for (int i = 0; i < columns.length; i++) {
      values[i] = Extremes.of(types[columns[i]], 1);
    }
  }

  /** Looks at the rows of a batch; {@code vectors} gives the vectors of a column by its ordinal. */
  public void prepare(Versions versions, IntFunction<ColumnVector[]> vectors) {
    if (states.length < versions.size()) {
      states = new byte[versions.size()];
    }
    if (newest.length < versions.keys()) {
      newest = new int[versions.keys()];
    }
    ColumnVector[][] orders = new ColumnVector[columns.length][];
    for (int i = 0; i < columns.length; i++) {
      orders[i] = vectors.apply(columns[i]);
    }
    for (int key = 0; key < versions.keys(); key++) {
      int best = -1;
      for (int version = versions.first(key); version <= versions.last(key); version++) {
        if (!touches(versions, orders, version)) {
          states[version] = UNTOUCHED;
        } else if (best < 0 || isNewest(versions, orders, version, best)) {
          states[version] = NEWER;
          best = version;
        } else {
          states[version] = LATE;
        }
      }
      newest[key] = best;
    }
  }

  /** The newest row of a key in this group; below 0 if no row touches the group. */
  int newest(int key) {
    return newest[key];
  }

  boolean touches(int version) {
    return states[version] != UNTOUCHED;
  }

  boolean isLate(int version) {
    return states[version] == LATE;
  }

  private static boolean touches(Versions versions, ColumnVector[][] orders, int version) {
    for (ColumnVector[] order : orders) {
      if (!RowSelectionFold.isNull(versions, order, version)) {
        return true;
      }
    }
    return false;
  }

  private boolean isNewest(Versions versions, ColumnVector[][] orders, int version, int best) {
    for (int i = 0; i < orders.length; i++) {
      boolean isNull = RowSelectionFold.isNull(versions, orders[i], version);
      boolean wasNull = RowSelectionFold.isNull(versions, orders[i], best);
      if (isNull != wasNull) {
        return wasNull;
      }
      int order = isNull ? 0 : values[i].compare(versions, orders[i], version, best);
      if (order != 0) {
        return order > 0;
      }
    }
    return true;
  }
}

package io.lockgate.spark.merge.folds;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnVector;

/** The fold that picks the newest row of a sequence group; null where no row touches the group. */
final class NewestInGroup extends Fold {
  private final GroupOrder group;

  NewestInGroup(DataType type, GroupOrder group) {
    super(type, 1);
    this.group = group;
  }

  @Override
  public void fold(Versions versions, ColumnVector[] vectors, int[] sources, int[] rows) {
    for (int key = 0; key < versions.keys(); key++) {
      int position = versions.position(key);
      int picked = group.newest(key);
      if (picked < 0) {
        target().putNull(0);
        sources[position] = vectors.length;
        rows[position] = 0;
      } else {
        sources[position] = versions.page(picked);
        rows[position] = versions.row(picked);
      }
    }
  }
}

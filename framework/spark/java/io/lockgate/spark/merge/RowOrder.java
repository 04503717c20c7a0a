package io.lockgate.spark.merge;

import org.apache.spark.sql.catalyst.InternalRow;
import scala.math.Ordering;

/** An order of the rows of pages. */
public interface RowOrder {
  int compare(MergePage left, int leftRow, MergePage right, int rightRow);

  /** The order that {@code rows} has. */
  static RowOrder of(Ordering<InternalRow> rows) {
    return (left, leftRow, right, rightRow) ->
        rows.compare(left.first(leftRow), right.second(rightRow));
  }

  /** By key: by the pages' numbers, and where these do not tell by {@code keys}. */
  static RowOrder byKey(Ordering<InternalRow> keys) {
    RowOrder whole = of(keys);
    return (left, leftRow, right, rightRow) -> {
      int order = Long.compare(left.prefix(leftRow), right.prefix(rightRow));
      return order != 0 || left.exact() && right.exact()
          ? order
          : whole.compare(left, leftRow, right, rightRow);
    };
  }
}

package io.lockgate.spark.merge;

import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Ascending$;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Descending$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NullsFirst$;
import org.apache.spark.sql.catalyst.expressions.RowOrdering;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.LongType;
import scala.jdk.javaapi.CollectionConverters;

/** Orders the rows of one key from old to new, as the merge plan's sequence columns say. */
public final class RowAges {
  /**
   * A column that says what is newer: its place in a row, and whether its smaller value is newer.
   */
  public record Column(int at, DataType type, boolean descending) {
    /** The order of this column; a null is the oldest whichever way the others are ordered. */
    public SortOrder order() {
      Expression value = new BoundReference(at, type, true);
      return new SortOrder(
          value,
          descending ? Descending$.MODULE$ : Ascending$.MODULE$,
          NullsFirst$.MODULE$,
          CollectionConverters.asScala(List.<Expression>of()).toSeq());
    }
  }

  private RowAges() {}

  public static RowOrder of(List<Column> columns) {
    Column first = columns.get(0);
    if (columns.size() == 1 && first.type() instanceof LongType && !first.descending()) {
      // The number of the row, which is never null.
      int at = first.at();
      return (left, leftRow, right, rightRow) ->
          Long.compare(left.column(at).getLong(leftRow), right.column(at).getLong(rightRow));
    }
    List<SortOrder> orders = columns.stream().map(Column::order).toList();
    return RowOrder.of(
        RowOrdering.create(
            CollectionConverters.asScala(orders).toSeq(),
            CollectionConverters.asScala(List.<Attribute>of()).toSeq()));
  }
}

package io.lockgate.spark.merge.folds;

import io.lockgate.spark.merge.MergePlan;
import io.lockgate.spark.merge.functions.ColumnFunction;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.RowToColumnConverter;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatchRow;

/** The fold of any function, by values in Spark's internal form, in a sequence group or none. */
final class Computed extends Fold {
  private final ColumnFunction function;
  private final GroupOrder group;
  private final RowToColumnConverter converter;
  private final GenericInternalRow row = new GenericInternalRow(1);

  /** {@code group} is null for a column outside groups. */
  Computed(MergePlan.Column plan, DataType type, int mostRows, GroupOrder group) {
    super(type, mostRows);
    this.group = group;
    this.function = ColumnFunction.of(plan, type);
    this.converter = new RowToColumnConverter(new StructType().add("c", type, true));
  }

  @Override
  public void fold(Versions versions, ColumnVector[] vectors, int[] sources, int[] rows) {
    WritableColumnVector[] target = {target()};
    ColumnarBatchRow[] pages = new ColumnarBatchRow[vectors.length];
    for (int page = 0; page < pages.length; page++) {
      pages[page] = new ColumnarBatchRow(new ColumnVector[] {vectors[page]});
    }
    for (int key = 0; key < versions.keys(); key++) {
      function.reset();
      Object value = null;
      for (int version = versions.first(key); version <= versions.last(key); version++) {
        if (group == null || group.touches(version)) {
          Object next = value(pages[versions.page(version)], versions.row(version), type);
          boolean late = group != null && group.isLate(version);
          value = late ? function.addLate(value, next) : function.add(value, next);
        }
      }
      row.update(0, value);
      converter.convert(row, target);
      sources[versions.position(key)] = vectors.length;
      rows[versions.position(key)] = key;
    }
  }

  /** The value of a row whose only column is of {@code type}. */
  static Object value(ColumnarBatchRow page, int row, DataType type) {
    page.rowId = row;
    return page.isNullAt(0) ? null : page.get(0, type);
  }
}

package io.lockgate.spark.merge;

import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.RowToColumnConverter;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;

/** Combined rows, until their batch has been returned; it takes memory with the first one. */
final class CombinedPage extends MergePage {
  private final ColumnVector[] columns;
  private final StructType schema;
  private final int firstColumn;
  private final int mostRows;
  private WritableColumnVector[] vectors;
  private RowToColumnConverter converter;
  private GenericInternalRow row;
  private int count;

  CombinedPage(DataType[] types, int firstColumn, int mostRows) {
    this(new ColumnVector[types.length], types, firstColumn, mostRows);
  }

  private CombinedPage(ColumnVector[] columns, DataType[] types, int firstColumn, int mostRows) {
    super(columns, 0);
    this.columns = columns;
    this.firstColumn = firstColumn;
    this.mostRows = mostRows;
    StructType made = new StructType();
    for (int i = firstColumn; i < types.length; i++) {
      made = made.add("c" + i, types[i], true);
    }
    this.schema = made;
  }

  private void allocate() {
    OnHeapColumnVector[] allocated = OnHeapColumnVector.allocateColumns(mostRows, schema);
    System.arraycopy(allocated, 0, columns, firstColumn, allocated.length);
    vectors = allocated;
    converter = new RowToColumnConverter(schema);
    row = new GenericInternalRow(schema.length());
  }

  /** Takes the row that an engine has put together and answers its number. */
  int add(RowEngine engine) {
    if (vectors == null) {
      allocate();
    }
    for (int i = 0; i < schema.length(); i++) {
      row.update(i, engine.value(firstColumn + i));
    }
    converter.convert(row, vectors);
    return count++;
  }

  void clear() {
    if (count > 0) {
      for (WritableColumnVector vector : vectors) {
        vector.reset();
      }
      count = 0;
    }
  }
}

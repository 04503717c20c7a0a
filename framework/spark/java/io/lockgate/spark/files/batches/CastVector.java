package io.lockgate.spark.files.batches;

import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.RowToColumnConverter;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatchRow;

/**
 * A column of a file as values of the type that it was altered to since; a value that does not fit
 * is an error.
 */
public final class CastVector {
  private final TypeChange change;
  private final RowToColumnConverter converter;
  private final OnHeapColumnVector output;

  public CastVector(DataType written, DataType wanted, int batchRows) {
    this(TypeChange.of(StoredType.named(written), StoredType.named(wanted)), wanted, batchRows);
  }

  public CastVector(TypeChange change, DataType wanted, int batchRows) {
    this.change = change;
    this.converter = new RowToColumnConverter(new StructType().add("c", wanted, true));
    this.output = new OnHeapColumnVector(batchRows, wanted);
  }

  public ColumnVector output() {
    return output;
  }

  public void fill(ColumnVector from, int count) {
    output.reset();
    ColumnarBatchRow row = new ColumnarBatchRow(new ColumnVector[] {from});
    GenericInternalRow changed = new GenericInternalRow(1);
    WritableColumnVector[] target = {output};
    for (int i = 0; i < count; i++) {
      row.rowId = i;
      changed.update(0, change.value(row, 0));
      converter.convert(changed, target);
    }
  }
}

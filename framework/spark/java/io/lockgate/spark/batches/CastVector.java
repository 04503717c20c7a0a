package io.lockgate.spark.batches;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.RowToColumnConverter;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatchRow;
import scala.Option;

/**
 * A column of a file as values of the type that it was altered to since; a value that does not fit
 * is an error.
 */
public final class CastVector {
  private final Expression cast;
  private final RowToColumnConverter converter;
  private final OnHeapColumnVector output;

  public CastVector(DataType written, DataType wanted, int batchRows) {
    this.cast =
        new Cast(
            new BoundReference(0, written, true),
            wanted,
            Option.apply("UTC"),
            EvalMode$.MODULE$.ANSI());
    this.converter = new RowToColumnConverter(new StructType().add("c", wanted, true));
    this.output = new OnHeapColumnVector(batchRows, wanted);
  }

  public ColumnVector output() {
    return output;
  }

  public void fill(ColumnVector from, int count) {
    output.reset();
    ColumnarBatchRow row = new ColumnarBatchRow(new ColumnVector[] {from});
    WritableColumnVector[] target = {output};
    for (int i = 0; i < count; i++) {
      row.rowId = i;
      converter.convert(
          new GenericInternalRow(new Object[] {cast.eval((InternalRow) row)}), target);
    }
  }
}

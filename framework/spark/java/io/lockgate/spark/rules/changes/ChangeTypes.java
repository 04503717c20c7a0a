package io.lockgate.spark.rules.changes;

import io.lockgate.spark.files.batches.MappedBatches;
import io.lockgate.spark.files.batches.PlainVector;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;

/** The kind of each row, column {@code kind}, in Spark's words. */
record ChangeTypes(int kind, boolean pairs) implements MappedBatches.Step {
  private static final UTF8String INSERT = UTF8String.fromString("insert");
  private static final UTF8String DELETE = UTF8String.fromString("delete");
  private static final UTF8String[] OF_PAIRS = {INSERT, DELETE, INSERT, DELETE};
  private static final UTF8String[] OF_UPDATES = {
    INSERT,
    UTF8String.fromString("update_preimage"),
    UTF8String.fromString("update_postimage"),
    DELETE
  };

  @Override
  public ColumnarBatch apply(ColumnarBatch read) {
    ColumnVector[] columns = new ColumnVector[read.numCols()];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = i == kind ? new Types(read.column(i), pairs) : read.column(i);
    }
    return new ColumnarBatch(columns, read.numRows());
  }

  private static final class Types extends PlainVector {
    private final ColumnVector kinds;
    private final UTF8String[] words;

    Types(ColumnVector kinds, boolean pairs) {
      super(DataTypes.StringType);
      this.kinds = kinds;
      this.words = pairs ? OF_PAIRS : OF_UPDATES;
    }

    @Override
    public UTF8String getUTF8String(int row) {
      int number = kinds.isNullAt(row) ? 0 : kinds.getByte(row);
      if (number < 0 || number >= words.length) {
        throw new IllegalStateException("a data file has a row of the unknown kind " + number);
      }
      return words[number];
    }
  }
}

package io.lockgate.spark.files.batches;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.RowToColumnConverter;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatchRow;

/** Copies the first rows of a column into a vector that is one's own. */
public final class VectorCopy {
  private VectorCopy() {}

  public static void copy(ColumnVector from, WritableColumnVector to, int count) {
    to.reset();
    DataType type = from.dataType();
    if (count == 0) {
      return;
    } else if (type instanceof IntegerType || type instanceof DateType) {
      to.putInts(0, count, from.getInts(0, count), 0);
    } else if (type instanceof LongType
        || type instanceof TimestampType
        || type instanceof TimestampNTZType) {
      to.putLongs(0, count, from.getLongs(0, count), 0);
    } else if (type instanceof DoubleType) {
      to.putDoubles(0, count, from.getDoubles(0, count), 0);
    } else if (type instanceof FloatType) {
      to.putFloats(0, count, from.getFloats(0, count), 0);
    } else if (type instanceof ShortType) {
      to.putShorts(0, count, from.getShorts(0, count), 0);
    } else if (type instanceof ByteType) {
      to.putBytes(0, count, from.getBytes(0, count), 0);
    } else if (type instanceof BooleanType) {
      for (int i = 0; i < count; i++) {
        to.putBoolean(i, !from.isNullAt(i) && from.getBoolean(i));
      }
    } else if (type instanceof StringType || type instanceof BinaryType) {
      copyBytes(from, to, count, type instanceof StringType);
    } else {
      copyRows(from, to, count);
      return;
    }
    copyNulls(from, to, count);
  }

  private static void copyBytes(
      ColumnVector from, WritableColumnVector to, int count, boolean text) {
    for (int i = 0; i < count; i++) {
      if (!from.isNullAt(i)) {
        byte[] bytes = text ? from.getUTF8String(i).getBytes() : from.getBinary(i);
        to.putByteArray(i, bytes, 0, bytes.length);
      }
    }
  }

  private static void copyNulls(ColumnVector from, WritableColumnVector to, int count) {
    if (from.hasNull()) {
      for (int i = 0; i < count; i++) {
        if (from.isNullAt(i)) {
          to.putNull(i);
        }
      }
    }
  }

  private static void copyRows(ColumnVector from, WritableColumnVector to, int count) {
    RowToColumnConverter converter =
        new RowToColumnConverter(new StructType().add("c", from.dataType(), true));
    ColumnarBatchRow row = new ColumnarBatchRow(new ColumnVector[] {from});
    WritableColumnVector[] target = {to};
    for (int i = 0; i < count; i++) {
      row.rowId = i;
      converter.convert((InternalRow) row, target);
    }
  }
}

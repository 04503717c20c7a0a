package io.lockgate.spark.files;

import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The numbers of the rows of a batch in their file: rows of one batch follow each other, whatever
 * filters skip between.
 */
public final class RowNumbers extends ColumnVector {
  private long first;

  public RowNumbers() {
    super(DataTypes.LongType);
  }

  /** Says which row the batch begins with. */
  public void startAt(long row) {
    first = row;
  }

  @Override
  public long getLong(int row) {
    return first + row;
  }

  @Override
  public boolean hasNull() {
    return false;
  }

  @Override
  public int numNulls() {
    return 0;
  }

  @Override
  public boolean isNullAt(int row) {
    return false;
  }

  @Override
  public void close() {}

  private static UnsupportedOperationException notANumber() {
    return new UnsupportedOperationException("row numbers are BIGINT");
  }

  @Override
  public boolean getBoolean(int row) {
    throw notANumber();
  }

  @Override
  public byte getByte(int row) {
    throw notANumber();
  }

  @Override
  public short getShort(int row) {
    throw notANumber();
  }

  @Override
  public int getInt(int row) {
    throw notANumber();
  }

  @Override
  public float getFloat(int row) {
    throw notANumber();
  }

  @Override
  public double getDouble(int row) {
    throw notANumber();
  }

  @Override
  public ColumnarArray getArray(int row) {
    throw notANumber();
  }

  @Override
  public ColumnarMap getMap(int row) {
    throw notANumber();
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    throw notANumber();
  }

  @Override
  public UTF8String getUTF8String(int row) {
    throw notANumber();
  }

  @Override
  public byte[] getBinary(int row) {
    throw notANumber();
  }

  @Override
  public ColumnVector getChild(int ordinal) {
    throw notANumber();
  }
}

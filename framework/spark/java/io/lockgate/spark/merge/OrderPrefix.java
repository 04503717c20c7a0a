package io.lockgate.spark.merge;

import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.types.ByteArray;

/**
 * Numbers that order values of a column as the values themselves are ordered; equal numbers may
 * stand for different values.
 */
final class OrderPrefix {
  /** The prefix of a null; nulls come first. */
  private static final long LEAST = Long.MIN_VALUE;

  private OrderPrefix() {}

  /** One value of a column as a number. */
  private interface Prefix {
    long of(ColumnVector column, int row);
  }

  /**
   * Sets the numbers of the first {@code rows} values; returns whether equal numbers mean equal
   * values.
   */
  static boolean fill(ColumnVector column, int rows, long[] prefixes) {
    DataType type = column.dataType();
    Prefix prefix = prefix(type);
    boolean nulls = column.hasNull();
    for (int row = 0; row < rows; row++) {
      prefixes[row] = nulls && column.isNullAt(row) ? LEAST : prefix.of(column, row);
    }
    return !nulls && isNumber(type);
  }

  /** Tells whether the number says all about a value. */
  private static boolean isNumber(DataType type) {
    return type instanceof LongType
        || type instanceof IntegerType
        || type instanceof DateType
        || type instanceof ShortType
        || type instanceof ByteType
        || type instanceof BooleanType
        || type instanceof TimestampType
        || type instanceof TimestampNTZType
        || isShortDecimal(type);
  }

  private static boolean isShortDecimal(DataType type) {
    return type instanceof DecimalType decimal && decimal.precision() <= Decimal.MAX_LONG_DIGITS();
  }

  private static Prefix prefix(DataType type) {
    if (type instanceof LongType
        || type instanceof TimestampType
        || type instanceof TimestampNTZType) {
      return ColumnVector::getLong;
    } else if (type instanceof IntegerType || type instanceof DateType) {
      return ColumnVector::getInt;
    } else if (type instanceof ShortType) {
      return ColumnVector::getShort;
    } else if (type instanceof ByteType) {
      return ColumnVector::getByte;
    } else if (type instanceof BooleanType) {
      return (column, row) -> column.getBoolean(row) ? 1 : 0;
    } else if (isShortDecimal(type)) {
      DecimalType decimal = (DecimalType) type;
      return (column, row) ->
          column.getDecimal(row, decimal.precision(), decimal.scale()).toUnscaledLong();
    } else if (type instanceof StringType) {
      // Bytes without sign: the lowest becomes the lowest number.
      return (column, row) -> column.getUTF8String(row).getPrefix() ^ Long.MIN_VALUE;
    } else if (type instanceof BinaryType) {
      return (column, row) -> ByteArray.getPrefix(column.getBinary(row)) ^ Long.MIN_VALUE;
    }
    return (column, row) -> LEAST;
  }
}

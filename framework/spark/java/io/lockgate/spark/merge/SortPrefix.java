package io.lockgate.spark.merge;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Forty bits that order most values of a column as the values themselves are ordered; equal bits
 * say nothing.
 */
public final class SortPrefix {
  public static final int BITS = 40;
  private static final long HALF = 1L << (BITS - 1);

  private SortPrefix() {}

  public static long of(InternalRow row, int at, DataType type) {
    if (row.isNullAt(at)) {
      return 0;
    } else if (type instanceof LongType) {
      return number(row.getLong(at));
    } else if (type instanceof IntegerType || type instanceof DateType) {
      return number(row.getInt(at));
    } else if (type instanceof ShortType) {
      return number(row.getShort(at));
    } else if (type instanceof ByteType) {
      return number(row.getByte(at));
    } else if (type instanceof StringType) {
      return text(row.getUTF8String(at));
    }
    return 0;
  }

  private static long number(long value) {
    return Math.max(-HALF, Math.min(HALF - 1, value)) + HALF;
  }

  private static long text(UTF8String value) {
    long prefix = 0;
    for (int i = 0; i < BITS / 8; i++) {
      prefix = prefix << 8 | (i < value.numBytes() ? value.getByte(i) & 0xFF : 0);
    }
    return prefix;
  }
}

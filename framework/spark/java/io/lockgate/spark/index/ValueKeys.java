package io.lockgate.spark.index;

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** Keys of whole values, by the hashes of pushdown/index/hashes.py. */
final class ValueKeys {
  // Of 64 bits of a hash the upper 36.
  private static final int CUT = 28;
  private static final int FILTER_BITS = 4096;
  private static final int PROBES = 7;
  private static final long MICROS_OF_MILLI = 1000;

  @FunctionalInterface
  private interface Hash {
    long of(SpecializedGetters row, int ordinal);
  }

  private ValueKeys() {}

  /** The key of each value: a part of its hash. */
  static ColumnKeys.Source ofValues(String values, DataType type) {
    Hash hash = hash(values, type);
    return (row, ordinal, keys) -> {
      keys.add(hash.of(row, ordinal) >>> CUT);
      return true;
    };
  }

  /** The keys of each value: its bits in the Bloom filter of a block. */
  static ColumnKeys.Source ofFilters(String values, DataType type) {
    Hash hash = hash(values, type);
    return (row, ordinal, keys) -> {
      long found = hash.of(row, ordinal);
      long step = found >>> Integer.SIZE | 1;
      long probe = found & 0xFFFFFFFFL;
      for (int i = 0; i < PROBES; i++) {
        keys.add(probe % FILTER_BITS);
        probe += step;
      }
      return true;
    };
  }

  private static Hash hash(String values, DataType type) {
    return switch (values) {
      case "TEXT" -> (row, ordinal) -> ofText(row.getUTF8String(ordinal));
      case "BYTES" -> (row, ordinal) -> ofBytes(row.getBinary(ordinal));
      case "BOOLEAN" -> (row, ordinal) -> ofNumber(row.getBoolean(ordinal) ? 1 : 0);
      case "TINYINT" -> (row, ordinal) -> ofNumber(row.getByte(ordinal));
      case "SMALLINT" -> (row, ordinal) -> ofNumber(row.getShort(ordinal));
      case "INT" -> (row, ordinal) -> ofNumber(row.getInt(ordinal));
      case "BIGINT", "MICROS" -> (row, ordinal) -> ofNumber(row.getLong(ordinal));
      case "MILLIS" ->
          (row, ordinal) -> ofNumber(Math.floorDiv(row.getLong(ordinal), MICROS_OF_MILLI));
      // Of the many NaNs these know one.
      case "FLOAT" -> (row, ordinal) -> ofNumber(Float.floatToIntBits(row.getFloat(ordinal)));
      case "DOUBLE" -> (row, ordinal) -> ofNumber(Double.doubleToLongBits(row.getDouble(ordinal)));
      case "DECIMAL" -> ofDecimals((DecimalType) type);
      default -> throw new IllegalArgumentException("there are no indexed values " + values);
    };
  }

  private static Hash ofDecimals(DecimalType type) {
    int precision = type.precision();
    int scale = type.scale();
    return (row, ordinal) -> ofNumber(row.getDecimal(ordinal, precision, scale).toUnscaledLong());
  }

  private static long ofText(UTF8String text) {
    return XXH64.hashUnsafeBytes(text.getBaseObject(), text.getBaseOffset(), text.numBytes(), 0);
  }

  static long ofBytes(byte[] bytes) {
    return ofBytes(bytes, bytes.length);
  }

  /** Returns the hash of the first bytes of an array. */
  static long ofBytes(byte[] bytes, int length) {
    return XXH64.hashUnsafeBytes(bytes, Platform.BYTE_ARRAY_OFFSET, length, 0);
  }

  /** Returns the key of a text of which these are the first bytes. */
  static long key(byte[] bytes, int length) {
    return ofBytes(bytes, length) >>> CUT;
  }

  /** Returns Thomas Wang's hash; it shifts to the right with the sign. */
  private static long ofNumber(long number) {
    long mixed = ~number + (number << 21);
    mixed ^= mixed >> 24;
    mixed += (mixed << 3) + (mixed << 8);
    mixed ^= mixed >> 14;
    mixed += (mixed << 2) + (mixed << 4);
    mixed ^= mixed >> 28;
    return mixed + (mixed << 31);
  }
}

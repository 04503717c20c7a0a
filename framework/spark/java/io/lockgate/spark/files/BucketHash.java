package io.lockgate.spark.files;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;

/**
 * The bucket of a row, as Paimon computes it: murmur3 of the bucket key's BinaryRow, seed 42, then
 * {@code abs(hash % buckets)}.
 *
 * <p>A BinaryRow is a header byte and null bits in whole words, a word for each field, then the
 * bytes of long values. Not for use by several threads.
 */
public final class BucketHash {
  private static final int SEED = 42;
  private static final int INLINE = 7;

  private final int[] ordinals;
  private final DataType[] types;
  private final int fixed;
  private final int nullBytes;
  private byte[] bytes;
  private ByteBuffer buffer;
  private int end;

  public BucketHash(int[] ordinals, DataType[] types) {
    this.ordinals = ordinals.clone();
    this.types = types.clone();
    this.nullBytes = (ordinals.length + 63 + 8) / 64 * 8;
    this.fixed = nullBytes + 8 * ordinals.length;
    allocate(fixed + 64);
  }

  private void allocate(int size) {
    bytes = bytes == null ? new byte[size] : Arrays.copyOf(bytes, size);
    buffer = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  public int bucket(SpecializedGetters row, int buckets) {
    return Math.abs(hash(row) % buckets);
  }

  /** The hash of a row's columns, before it becomes a bucket's number. */
  public int hash(SpecializedGetters row) {
    Arrays.fill(bytes, 0, fixed, (byte) 0);
    end = fixed;
    for (int i = 0; i < ordinals.length; i++) {
      if (row.isNullAt(ordinals[i])) {
        bytes[(i + 8) / 8] |= (byte) (1 << ((i + 8) % 8));
        reserveNull(i, nullBytes + 8 * i);
      } else {
        put(row, i, nullBytes + 8 * i);
      }
    }
    return Murmur3_x86_32.hashUnsafeWords(bytes, Platform.BYTE_ARRAY_OFFSET, end, SEED);
  }

  /** A null of a type that lies among the long values takes its room there all the same. */
  private void reserveNull(int field, int at) {
    if (types[field] instanceof DecimalType decimal
        && decimal.precision() > Decimal.MAX_LONG_DIGITS()) {
      buffer.putLong(at, (long) grow(16) << 32);
    } else if (types[field] instanceof TimestampType || types[field] instanceof TimestampNTZType) {
      buffer.putLong(at, (long) grow(8) << 32);
    }
  }

  private void put(SpecializedGetters row, int field, int at) {
    int ordinal = ordinals[field];
    DataType type = types[field];
    if (type instanceof IntegerType || type instanceof DateType) {
      buffer.putInt(at, row.getInt(ordinal));
    } else if (type instanceof LongType) {
      buffer.putLong(at, row.getLong(ordinal));
    } else if (type instanceof StringType) {
      putBytes(at, row.getUTF8String(ordinal).getBytes());
    } else if (type instanceof BinaryType) {
      putBytes(at, row.getBinary(ordinal));
    } else if (type instanceof ShortType) {
      buffer.putShort(at, row.getShort(ordinal));
    } else if (type instanceof ByteType) {
      buffer.put(at, row.getByte(ordinal));
    } else if (type instanceof BooleanType) {
      buffer.put(at, (byte) (row.getBoolean(ordinal) ? 1 : 0));
    } else if (type instanceof FloatType) {
      buffer.putFloat(at, row.getFloat(ordinal));
    } else if (type instanceof DoubleType) {
      buffer.putDouble(at, row.getDouble(ordinal));
    } else if (type instanceof DecimalType decimal) {
      putDecimal(at, row.getDecimal(ordinal, decimal.precision(), decimal.scale()), decimal);
    } else if (type instanceof TimestampType || type instanceof TimestampNTZType) {
      putTimestamp(at, row.getLong(ordinal));
    } else {
      throw new IllegalArgumentException(
          "a column of type " + type.sql() + " cannot be a bucket key");
    }
  }

  private void putDecimal(int at, Decimal value, DecimalType type) {
    if (type.precision() <= Decimal.MAX_LONG_DIGITS()) {
      buffer.putLong(at, value.toUnscaledLong());
      return;
    }
    byte[] unscaled = value.toJavaBigDecimal().unscaledValue().toByteArray();
    int start = grow(16);
    System.arraycopy(unscaled, 0, bytes, start, unscaled.length);
    buffer.putLong(at, (long) start << 32 | unscaled.length);
  }

  /**
   * A timestamp of more than millisecond precision: milliseconds among the long values, and at its
   * own place the rest of the nanoseconds.
   */
  private void putTimestamp(int at, long micros) {
    int start = grow(8);
    buffer.putLong(start, Math.floorDiv(micros, 1000L));
    buffer.putLong(at, (long) start << 32 | Math.floorMod(micros, 1000L) * 1000L);
  }

  private void putBytes(int at, byte[] value) {
    if (value.length <= INLINE) {
      System.arraycopy(value, 0, bytes, at, value.length);
      bytes[at + INLINE] = (byte) (value.length | 0x80);
      return;
    }
    int start = grow((value.length + 7) / 8 * 8);
    System.arraycopy(value, 0, bytes, start, value.length);
    buffer.putLong(at, (long) start << 32 | value.length);
  }

  private int grow(int size) {
    int start = end;
    end += size;
    if (end > bytes.length) {
      allocate(Math.max(2 * bytes.length, end));
    }
    Arrays.fill(bytes, start, end, (byte) 0);
    return start;
  }
}

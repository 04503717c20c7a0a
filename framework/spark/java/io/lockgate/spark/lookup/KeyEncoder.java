package io.lockgate.spark.lookup;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.unsafe.Platform;

/**
 * Makes the bytes of a lookup key from a row's columns: a hash, then bytes that differ for any two
 * keys. {@code lookup/codec/key_codec.py} has the format and its reasons.
 */
final class KeyEncoder {
  private static final long GOLDEN = 0x9E3779B97F4A7C15L;
  private static final long HASH_BITS = Long.MAX_VALUE;

  private final RowShape shape;
  private final DataType[] types;
  private long[] words;
  private int count;

  /** The types of the key's columns come in the order of its shape. */
  KeyEncoder(RowShape shape, DataType[] types) {
    this.shape = shape;
    this.types = types;
    this.words = new long[shape.headWords + 8];
  }

  /** Takes the key of a row; false if a part of it is null, which nothing equals. */
  boolean encode(InternalRow row) {
    for (int i = 0; i < shape.kinds.length; i++) {
      if (row.isNullAt(i)) {
        return false;
      }
    }
    Arrays.fill(words, 0, shape.headWords, 0);
    long end = (long) shape.headWords * Long.BYTES;
    for (int i = 0; i < shape.kinds.length; i++) {
      if (shape.kinds[i].isVariable()) {
        end = putBytes(i, bytes(row, i), (int) end);
      } else {
        putFixed(i, row);
      }
    }
    count = (int) ((end + Long.BYTES - 1) / Long.BYTES);
    long hash = 0;
    for (int i = 0; i < count; i++) {
      hash += mix(words[i] + (i + 1) * GOLDEN);
    }
    words[0] = mix(hash) & HASH_BITS;
    return true;
  }

  /** The hash of the key taken last. */
  long hash() {
    return words[0];
  }

  /** Returns how many words the key has, the hash being the first. */
  int count() {
    return count;
  }

  long word(int index) {
    return words[index];
  }

  /** The key as RocksDB has it, sorted by the bytes of its hash. */
  byte[] toBytes() {
    byte[] out = new byte[count * Long.BYTES];
    Platform.putLong(out, Platform.BYTE_ARRAY_OFFSET, Long.reverseBytes(words[0]));
    Platform.copyMemory(
        words,
        Platform.LONG_ARRAY_OFFSET + Long.BYTES,
        out,
        Platform.BYTE_ARRAY_OFFSET + Long.BYTES,
        out.length - Long.BYTES);
    return out;
  }

  private byte[] bytes(InternalRow row, int column) {
    return shape.kinds[column] == RowShape.Kind.TEXT
        ? row.getUTF8String(column).getBytes()
        : row.getBinary(column);
  }

  private int putBytes(int column, byte[] value, int at) {
    int needed = (at + value.length + Long.BYTES - 1) / Long.BYTES;
    if (needed > words.length) {
      words = Arrays.copyOf(words, 2 * needed);
    }
    // The rest of the last word is zero, whatever a longer key has left there.
    Arrays.fill(words, (at + Long.BYTES - 1) / Long.BYTES, needed, 0);
    Platform.copyMemory(
        value, Platform.BYTE_ARRAY_OFFSET, words, Platform.LONG_ARRAY_OFFSET + at, value.length);
    long lengthAt =
        (long) shape.lengthsWord * Long.BYTES + shape.positions[column] * (long) Integer.BYTES;
    Platform.putInt(words, Platform.LONG_ARRAY_OFFSET + lengthAt, value.length);
    return at + value.length;
  }

  private void putFixed(int column, InternalRow row) {
    int word = shape.positions[column];
    switch (shape.kinds[column]) {
      case BOOLEAN -> words[word] = row.getBoolean(column) ? 1 : 0;
      case INT8 -> words[word] = row.getByte(column) & 0xFFL;
      case INT16 -> words[word] = row.getShort(column) & 0xFFFFL;
      case INT32 -> words[word] = row.getInt(column) & 0xFFFFFFFFL;
      case INT64 -> words[word] = row.getLong(column);
      // Adding a positive zero turns the negative one into it; all NaNs become one.
      case FLOAT32 -> words[word] = Float.floatToIntBits(row.getFloat(column) + 0.0f) & 0xFFFFFFFFL;
      case FLOAT64 -> words[word] = Double.doubleToLongBits(row.getDouble(column) + 0.0d);
      case DECIMAL -> words[word] = decimal(row, column).toUnscaledLong();
      case WIDE_DECIMAL -> {
        var unscaled = decimal(row, column).toJavaBigDecimal().unscaledValue();
        words[word] = unscaled.longValue();
        words[word + 1] = unscaled.shiftRight(Long.SIZE).longValue();
      }
      default -> throw new IllegalStateException(shape.kinds[column] + " has no fixed width");
    }
  }

  private org.apache.spark.sql.types.Decimal decimal(InternalRow row, int column) {
    DecimalType type = (DecimalType) types[column];
    return row.getDecimal(column, type.precision(), type.scale());
  }

  /** Scrambles a word one to one (the finaliser of SplitMix64, Steele et al. 2014). */
  private static long mix(long word) {
    word = (word ^ word >>> 30) * 0xBF58476D1CE4E5B9L;
    word = (word ^ word >>> 27) * 0x94D049BB133111EBL;
    return word ^ word >>> 31;
  }
}

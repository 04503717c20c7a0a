package io.lockgate.spark.lookup;

import java.math.BigDecimal;
import java.math.BigInteger;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;

/** Turns cached rows into Spark's: copies of their own, which stay when the cache is closed. */
final class RowDecoder {
  private static final int TYPICAL_BYTES = 256;

  private final RowShape shape;
  private final int[] answered;
  private final DataType[] types;
  private final UnsafeRowWriter writer;
  private final long[] ends;

  /**
   * {@code answered} are the columns of the cached row that become those of {@code type}, in its
   * order.
   */
  RowDecoder(RowShape shape, int[] answered, StructType type) {
    this.shape = shape;
    this.answered = answered;
    this.types = new DataType[answered.length];
    for (int i = 0; i < answered.length; i++) {
      types[i] = type.fields()[i].dataType();
    }
    this.writer = new UnsafeRowWriter(answered.length, TYPICAL_BYTES);
    int variable = 0;
    for (RowShape.Kind kind : shape.kinds) {
      variable += kind.isVariable() ? 1 : 0;
    }
    this.ends = new long[variable + 1];
  }

  /** The row at an offset; the next call writes over it. */
  UnsafeRow row(Object base, long offset) {
    writer.reset();
    writer.zeroOutNullBytes();
    findVariable(base, offset);
    for (int i = 0; i < answered.length; i++) {
      int column = answered[i];
      long nulls = Platform.getLong(base, offset + (column >> 6) * (long) Long.BYTES);
      if ((nulls >>> (column & 63) & 1) != 0) {
        setNull(i);
      } else {
        write(i, column, base, offset);
      }
    }
    return writer.getRow();
  }

  /**
   * The rows of a packed list (the Python module {@code lists}): their number, the length of each
   * in words, the rows.
   */
  GenericArrayData rows(Value list) {
    int count = (int) list.word(0);
    Object[] rows = new Object[count];
    long at = list.offset + (1 + (count + 1) / 2) * (long) Long.BYTES;
    for (int i = 0; i < count; i++) {
      rows[i] = row(list.base, at).copy();
      at +=
          Platform.getInt(list.base, list.offset + Long.BYTES + i * (long) Integer.BYTES)
              * (long) Long.BYTES;
    }
    return new GenericArrayData(rows);
  }

  private void findVariable(Object base, long offset) {
    long lengths = offset + shape.lengthsWord * (long) Long.BYTES;
    ends[0] = offset + shape.headWords * (long) Long.BYTES;
    for (int i = 1; i < ends.length; i++) {
      ends[i] = ends[i - 1] + Platform.getInt(base, lengths + (i - 1) * (long) Integer.BYTES);
    }
  }

  private void setNull(int field) {
    if (types[field] instanceof DecimalType decimal
        && decimal.precision() > Decimal.MAX_LONG_DIGITS()) {
      // Its place is kept, for rows that are updated where they are; the writer knows how.
      writer.write(field, (Decimal) null, decimal.precision(), decimal.scale());
    } else {
      writer.setNullAt(field);
    }
  }

  private void write(int field, int column, Object base, long offset) {
    RowShape.Kind kind = shape.kinds[column];
    if (kind.isVariable()) {
      int index = shape.positions[column];
      int size = (int) (ends[index + 1] - ends[index]);
      writer.write(
          field, org.apache.spark.unsafe.types.UTF8String.fromAddress(base, ends[index], size));
      return;
    }
    long at = offset + shape.positions[column] * (long) Long.BYTES;
    long word = Platform.getLong(base, at);
    switch (kind) {
      case BOOLEAN -> writer.write(field, word != 0);
      case INT8 -> writer.write(field, (byte) word);
      case INT16 -> writer.write(field, (short) word);
      case INT32 -> writer.write(field, (int) word);
      case FLOAT32 -> writer.write(field, Float.intBitsToFloat((int) word));
      case FLOAT64 -> writer.write(field, Double.longBitsToDouble(word));
      case MILLIS -> writer.write(field, word * 1000);
      case WIDE_DECIMAL -> writeWide(field, word, Platform.getLong(base, at + Long.BYTES));
      default -> writer.write(field, word); // a narrow decimal is its unscaled value
    }
  }

  private void writeWide(int field, long low, long high) {
    DecimalType type = (DecimalType) types[field];
    BigInteger unscaled =
        BigInteger.valueOf(high)
            .shiftLeft(Long.SIZE)
            .add(BigInteger.valueOf(low >>> 1).shiftLeft(1).add(BigInteger.valueOf(low & 1)));
    Decimal value =
        Decimal.apply(new BigDecimal(unscaled, type.scale()), type.precision(), type.scale());
    writer.write(field, value, type.precision(), type.scale());
  }
}

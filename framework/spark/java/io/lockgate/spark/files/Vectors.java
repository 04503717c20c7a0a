package io.lockgate.spark.files;

import java.util.function.LongUnaryOperator;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.Decimal64ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ListColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MapColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.orc.TypeDescription;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** Spark's view of the vectors that ORC's reader fills; nothing is copied. */
public final class Vectors {
  private Vectors() {}

  /** Nulls and repetition, which all vectors share; each kind of value adds its getters. */
  public abstract static class View extends ColumnVector {
    private final org.apache.hadoop.hive.ql.exec.vector.ColumnVector base;
    private int rows;

    View(DataType type, org.apache.hadoop.hive.ql.exec.vector.ColumnVector base) {
      super(type);
      this.base = base;
    }

    public void setRows(int count) {
      rows = count;
    }

    final int at(int row) {
      return base.isRepeating ? 0 : row;
    }

    @Override
    public boolean isNullAt(int row) {
      return !base.noNulls && base.isNull[at(row)];
    }

    @Override
    public boolean hasNull() {
      return !base.noNulls;
    }

    @Override
    public int numNulls() {
      if (base.noNulls) {
        return 0;
      }
      if (base.isRepeating) {
        return base.isNull[0] ? rows : 0;
      }
      int nulls = 0;
      for (int row = 0; row < rows; row++) {
        nulls += base.isNull[row] ? 1 : 0;
      }
      return nulls;
    }

    @Override
    public void close() {}

    @Override
    public boolean getBoolean(int row) {
      throw unsupported("boolean");
    }

    @Override
    public byte getByte(int row) {
      throw unsupported("byte");
    }

    @Override
    public short getShort(int row) {
      throw unsupported("short");
    }

    @Override
    public int getInt(int row) {
      throw unsupported("int");
    }

    @Override
    public long getLong(int row) {
      throw unsupported("long");
    }

    @Override
    public float getFloat(int row) {
      throw unsupported("float");
    }

    @Override
    public double getDouble(int row) {
      throw unsupported("double");
    }

    @Override
    public ColumnarArray getArray(int row) {
      throw unsupported("array");
    }

    @Override
    public ColumnarMap getMap(int row) {
      throw unsupported("map");
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
      throw unsupported("decimal");
    }

    @Override
    public UTF8String getUTF8String(int row) {
      throw unsupported("string");
    }

    @Override
    public byte[] getBinary(int row) {
      throw unsupported("binary");
    }

    @Override
    public ColumnVector getChild(int ordinal) {
      throw unsupported("child");
    }

    private UnsupportedOperationException unsupported(String what) {
      return new UnsupportedOperationException(
          "a column of type " + dataType().sql() + " has no " + what);
    }
  }

  /** BOOLEAN, TINYINT to BIGINT, DATE, and timestamps that a file keeps as microseconds. */
  static final class Longs extends View {
    private final LongColumnVector base;

    Longs(DataType type, LongColumnVector base) {
      super(type, base);
      this.base = base;
    }

    @Override
    public boolean getBoolean(int row) {
      return base.vector[at(row)] == 1;
    }

    @Override
    public byte getByte(int row) {
      return (byte) base.vector[at(row)];
    }

    @Override
    public short getShort(int row) {
      return (short) base.vector[at(row)];
    }

    @Override
    public int getInt(int row) {
      return (int) base.vector[at(row)];
    }

    @Override
    public long getLong(int row) {
      return base.vector[at(row)];
    }
  }

  /**
   * FLOAT and DOUBLE.
   *
   * <p>ORC's reader takes values for repeated if they are equal by {@code ==}, as 0.0 and -0.0 are.
   * It has stored all of them nevertheless where the file's own type is one of the two, unless all
   * are null; numbers of other types have one zero only.
   */
  static final class Doubles extends View {
    private final DoubleColumnVector base;
    private final boolean isStored;

    Doubles(DataType type, DoubleColumnVector base, TypeDescription.Category file) {
      super(type, base);
      this.base = base;
      this.isStored =
          file == TypeDescription.Category.FLOAT || file == TypeDescription.Category.DOUBLE;
    }

    private double value(int row) {
      return base.vector[isStored && base.noNulls ? row : at(row)];
    }

    @Override
    public float getFloat(int row) {
      return (float) value(row);
    }

    @Override
    public double getDouble(int row) {
      return value(row);
    }
  }

  /**
   * CHAR(n): ORC's reader takes the blanks at the end away; Spark gives them back to SELECT, but
   * not to UPDATE and MERGE.
   */
  static final class Chars extends Bytes {
    private static final UTF8String BLANK = UTF8String.fromString(" ");
    private final int length;

    Chars(DataType type, BytesColumnVector base, int length) {
      super(type, base);
      this.length = length;
    }

    @Override
    public UTF8String getUTF8String(int row) {
      UTF8String value = super.getUTF8String(row);
      return value.numChars() < length ? value.rpad(length, BLANK) : value;
    }
  }

  /** STRING, VARCHAR and BINARY. */
  static class Bytes extends View {
    private final BytesColumnVector base;

    Bytes(DataType type, BytesColumnVector base) {
      super(type, base);
      this.base = base;
    }

    @Override
    public UTF8String getUTF8String(int row) {
      int at = at(row);
      return UTF8String.fromBytes(base.vector[at], base.start[at], base.length[at]);
    }

    @Override
    public byte[] getBinary(int row) {
      int at = at(row);
      byte[] value = new byte[base.length[at]];
      System.arraycopy(base.vector[at], base.start[at], value, 0, value.length);
      return value;
    }
  }

  /** DECIMAL of any precision. */
  static final class Decimals extends View {
    private final DecimalColumnVector base;

    Decimals(DataType type, DecimalColumnVector base) {
      super(type, base);
      this.base = base;
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
      return Decimal.apply(
          base.vector[at(row)].getHiveDecimal().bigDecimalValue(), precision, scale);
    }
  }

  /** DECIMAL of few digits, as whole numbers of its last digit. */
  static final class ShortDecimals extends View {
    private final Decimal64ColumnVector base;

    ShortDecimals(DataType type, Decimal64ColumnVector base) {
      super(type, base);
      this.base = base;
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
      return Decimal.createUnsafe(base.vector[at(row)], precision, scale);
    }
  }

  /**
   * Timestamps of either kind, in microseconds; {@code adjust} turns the file's clock into the
   * wanted one.
   */
  static final class Timestamps extends View {
    private final TimestampColumnVector base;
    private final LongUnaryOperator adjust;

    Timestamps(DataType type, TimestampColumnVector base, LongUnaryOperator adjust) {
      super(type, base);
      this.base = base;
      this.adjust = adjust;
    }

    @Override
    public long getLong(int row) {
      int at = at(row);
      int nanos = base.nanos[at];
      // Arrow's writer counts fractions before 1970 downwards from the second after them: negative
      // nanoseconds.
      long seconds = nanos < 0 ? base.time[at] / 1000L : Math.floorDiv(base.time[at], 1000L);
      long micros = seconds * 1_000_000L + nanos / 1000;
      return adjust == null ? micros : adjust.applyAsLong(micros);
    }
  }

  /** STRUCT: the children hold the values, row by row. */
  static final class Structs extends View {
    private final View[] children;

    Structs(
        DataType type, org.apache.hadoop.hive.ql.exec.vector.ColumnVector base, View[] children) {
      super(type, base);
      this.children = children;
    }

    @Override
    public void setRows(int count) {
      super.setRows(count);
      for (View child : children) {
        child.setRows(count);
      }
    }

    @Override
    public ColumnVector getChild(int ordinal) {
      return children[ordinal];
    }
  }

  /** ARRAY: a range of the child for each row. */
  static final class Lists extends View {
    private final ListColumnVector base;
    private final View child;

    Lists(DataType type, ListColumnVector base, View child) {
      super(type, base);
      this.base = base;
      this.child = child;
    }

    @Override
    public ColumnarArray getArray(int row) {
      int at = at(row);
      return new ColumnarArray(child, (int) base.offsets[at], (int) base.lengths[at]);
    }
  }

  /** MAP: the same range of keys and of values for each row. */
  static final class Maps extends View {
    private final MapColumnVector base;
    private final View keys;
    private final View values;

    Maps(DataType type, MapColumnVector base, View keys, View values) {
      super(type, base);
      this.base = base;
      this.keys = keys;
      this.values = values;
    }

    @Override
    public ColumnarMap getMap(int row) {
      int at = at(row);
      return new ColumnarMap(keys, values, (int) base.offsets[at], (int) base.lengths[at]);
    }
  }

  /** A column or nested field that the file does not have. */
  static final class Missing extends View {
    Missing(DataType type) {
      super(type, nulls());
    }

    /** Nothing reads a field of a null, but its column may be asked for. */
    @Override
    public ColumnVector getChild(int ordinal) {
      return new Missing(((StructType) dataType()).apply(ordinal).dataType());
    }

    private static LongColumnVector nulls() {
      LongColumnVector nulls = new LongColumnVector(1);
      nulls.fillWithNulls();
      return nulls;
    }
  }
}

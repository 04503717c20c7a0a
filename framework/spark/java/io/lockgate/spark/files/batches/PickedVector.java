package io.lockgate.spark.files.batches;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A column with values from several vectors: value {@code i} is number {@code rows[i]} of vector
 * {@code sources[i]}.
 */
public final class PickedVector extends ColumnVector {
  private int[] sources;
  private int[] rows;
  private final PickedVector[] children;
  private ColumnVector[] vectors = {};
  private int count;

  public PickedVector(DataType type, int[] sources, int[] rows) {
    super(type);
    this.sources = sources;
    this.rows = rows;
    StructField[] fields = type instanceof StructType struct ? struct.fields() : new StructField[0];
    this.children = new PickedVector[fields.length];
    for (int i = 0; i < fields.length; i++) {
      children[i] = new PickedVector(fields[i].dataType(), sources, rows);
    }
  }

  /** Takes other arrays for the positions. */
  public void pickBy(int[] otherSources, int[] otherRows) {
    sources = otherSources;
    rows = otherRows;
    for (PickedVector child : children) {
      child.pickBy(otherSources, otherRows);
    }
  }

  /** Sets the vectors of the values, and the number of these. */
  public void bind(ColumnVector[] where, int values) {
    vectors = where;
    count = values;
    for (int i = 0; i < children.length; i++) {
      ColumnVector[] inside = new ColumnVector[where.length];
      for (int vector = 0; vector < inside.length; vector++) {
        inside[vector] = where[vector].getChild(i);
      }
      children[i].bind(inside, values);
    }
  }

  private ColumnVector vector(int row) {
    return vectors[sources[row]];
  }

  @Override
  public boolean isNullAt(int row) {
    return vector(row).isNullAt(rows[row]);
  }

  @Override
  public boolean hasNull() {
    for (ColumnVector vector : vectors) {
      if (vector.hasNull()) {
        return true;
      }
    }
    return false;
  }

  @Override
  public int numNulls() {
    int nulls = 0;
    for (int row = 0; row < count; row++) {
      nulls += isNullAt(row) ? 1 : 0;
    }
    return nulls;
  }

  /** The vectors are their files'. */
  @Override
  public void close() {}

  @Override
  public boolean getBoolean(int row) {
    return vector(row).getBoolean(rows[row]);
  }

  @Override
  public byte getByte(int row) {
    return vector(row).getByte(rows[row]);
  }

  @Override
  public short getShort(int row) {
    return vector(row).getShort(rows[row]);
  }

  @Override
  public int getInt(int row) {
    return vector(row).getInt(rows[row]);
  }

  @Override
  public long getLong(int row) {
    return vector(row).getLong(rows[row]);
  }

  @Override
  public float getFloat(int row) {
    return vector(row).getFloat(rows[row]);
  }

  @Override
  public double getDouble(int row) {
    return vector(row).getDouble(rows[row]);
  }

  @Override
  public ColumnarArray getArray(int row) {
    return vector(row).getArray(rows[row]);
  }

  @Override
  public ColumnarMap getMap(int row) {
    return vector(row).getMap(rows[row]);
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    return vector(row).getDecimal(rows[row], precision, scale);
  }

  @Override
  public UTF8String getUTF8String(int row) {
    return vector(row).getUTF8String(rows[row]);
  }

  @Override
  public byte[] getBinary(int row) {
    return vector(row).getBinary(rows[row]);
  }

  @Override
  public ColumnVector getChild(int ordinal) {
    return children[ordinal];
  }
}

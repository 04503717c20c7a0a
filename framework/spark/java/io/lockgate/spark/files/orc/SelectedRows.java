package io.lockgate.spark.files.orc;

import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MultiValuedColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.hadoop.hive.serde2.io.HiveDecimalWritable;

/**
 * Moves the rows that are kept to the front of the vectors that ORC's reader has filled.
 *
 * <p>To move the values of a batch once costs less than to look up the place of each when it is
 * asked for.
 */
public final class SelectedRows {
  private SelectedRows() {}

  /**
   * Keeps {@code count} rows of all vectors, by their numbers in ascending order; false if one of
   * the vectors cannot be changed, and then none is.
   */
  public static boolean keep(ColumnVector[] vectors, int[] rows, int count) {
    for (ColumnVector vector : vectors) {
      if (!isMovable(vector)) {
        return false;
      }
    }
    for (ColumnVector vector : vectors) {
      move(vector, rows, count);
    }
    return true;
  }

  private static boolean isMovable(ColumnVector vector) {
    if (vector instanceof DoubleColumnVector) {
      // Zeros of both signs count as repeated, and each has its own value all the same.
      return !vector.isRepeating;
    } else if (vector instanceof StructColumnVector struct) {
      for (ColumnVector field : struct.fields) {
        if (!isMovable(field)) {
          return false;
        }
      }
      return true;
    }
    return vector instanceof LongColumnVector
        || vector instanceof BytesColumnVector
        || vector instanceof TimestampColumnVector
        || vector instanceof DecimalColumnVector
        || vector instanceof MultiValuedColumnVector;
  }

  private static void move(ColumnVector vector, int[] rows, int count) {
    if (vector instanceof StructColumnVector struct) {
      for (ColumnVector field : struct.fields) {
        move(field, rows, count);
      }
    }
    if (vector.isRepeating) {
      return;
    }
    if (!vector.noNulls) {
      boolean[] nulls = vector.isNull;
      for (int i = 0; i < count; i++) {
        nulls[i] = nulls[rows[i]];
      }
    }
    if (vector instanceof LongColumnVector longs) {
      move(longs.vector, rows, count);
    } else if (vector instanceof DoubleColumnVector doubles) {
      double[] values = doubles.vector;
      for (int i = 0; i < count; i++) {
        values[i] = values[rows[i]];
      }
    } else if (vector instanceof BytesColumnVector bytes) {
      move(bytes.vector, rows, count);
      move(bytes.start, rows, count);
      move(bytes.length, rows, count);
    } else if (vector instanceof TimestampColumnVector timestamps) {
      move(timestamps.time, rows, count);
      move(timestamps.nanos, rows, count);
    } else if (vector instanceof DecimalColumnVector decimals) {
      swap(decimals.vector, rows, count);
    } else if (vector instanceof MultiValuedColumnVector lists) {
      // The elements stay where they are.
      move(lists.offsets, rows, count);
      move(lists.lengths, rows, count);
    }
  }

  private static void move(long[] values, int[] rows, int count) {
    for (int i = 0; i < count; i++) {
      values[i] = values[rows[i]];
    }
  }

  private static void move(int[] values, int[] rows, int count) {
    for (int i = 0; i < count; i++) {
      values[i] = values[rows[i]];
    }
  }

  private static void move(byte[][] values, int[] rows, int count) {
    for (int i = 0; i < count; i++) {
      values[i] = values[rows[i]];
    }
  }

  /** The reader fills the same objects again, so each place needs one of its own. */
  private static void swap(HiveDecimalWritable[] values, int[] rows, int count) {
    for (int i = 0; i < count; i++) {
      HiveDecimalWritable kept = values[rows[i]];
      values[rows[i]] = values[i];
      values[i] = kept;
    }
  }
}

package io.lockgate.spark.merge.folds;

import io.lockgate.spark.merge.MergePlan;
import io.lockgate.spark.merge.functions.Numbers;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.vectorized.ColumnVector;

/** Folds that add; a value that is alone among nulls stays where it is. */
abstract class Sums extends Fold {
  private Sums(DataType type, int mostRows) {
    super(type, mostRows);
  }

  /** The fold of a sum, whose numbers are of a type. */
  static Fold ofType(MergePlan.Column plan, DataType type, int mostRows) {
    if (type instanceof DoubleType) {
      return new Doubles(type, mostRows);
    } else if (type instanceof LongType || type instanceof IntegerType) {
      return new Whole(plan, type, mostRows);
    }
    return new Computed(plan, type, mostRows, null);
  }

  @Override
  public final void fold(Versions versions, ColumnVector[] vectors, int[] sources, int[] rows) {
    int count = 0;
    for (int key = 0; key < versions.keys(); key++) {
      int position = versions.position(key);
      int last = versions.last(key);
      int first = next(versions, vectors, versions.first(key), last);
      int second = next(versions, vectors, first + 1, last);
      if (second > last) {
        int alone = Math.min(first, last);
        sources[position] = versions.page(alone);
        rows[position] = versions.row(alone);
      } else {
        add(versions, vectors, first, last, count);
        sources[position] = vectors.length;
        rows[position] = count++;
      }
    }
  }

  /** The first version from {@code from} on whose value is not null; above {@code last} if none. */
  private static int next(Versions versions, ColumnVector[] vectors, int from, int last) {
    int version = from;
    while (version <= last && RowSelectionFold.isNull(versions, vectors, version)) {
      version++;
    }
    return version;
  }

  /** Puts the sum of the versions from {@code first} on, which is not null, into the target. */
  abstract void add(Versions versions, ColumnVector[] vectors, int first, int last, int at);

  private static final class Doubles extends Sums {
    Doubles(DataType type, int mostRows) {
      super(type, mostRows);
    }

    @Override
    void add(Versions versions, ColumnVector[] vectors, int first, int last, int at) {
      double sum = vectors[versions.page(first)].getDouble(versions.row(first));
      for (int version = first + 1; version <= last; version++) {
        if (!RowSelectionFold.isNull(versions, vectors, version)) {
          sum += vectors[versions.page(version)].getDouble(versions.row(version));
        }
      }
      target().putDouble(at, sum);
    }
  }

  /** Numbers of 32 or 64 bits; an overflow, of a sum in between too, is an error. */
  private static final class Whole extends Sums {
    private final MergePlan.Column plan;
    private final boolean wide;

    Whole(MergePlan.Column plan, DataType type, int mostRows) {
      super(type, mostRows);
      this.plan = plan;
      this.wide = type instanceof LongType;
    }

    @Override
    void add(Versions versions, ColumnVector[] vectors, int first, int last, int at) {
      long sum = number(versions, vectors, first);
      for (int version = first + 1; version <= last; version++) {
        if (!RowSelectionFold.isNull(versions, vectors, version)) {
          long next = number(versions, vectors, version);
          long found = sum + next;
          if (wide ? ((sum ^ found) & (next ^ found)) < 0 : found != (int) found) {
            throw Numbers.tooLarge(plan, wide ? Long.SIZE : Integer.SIZE);
          }
          sum = found;
        }
      }
      OnHeapColumnVector target = target();
      if (wide) {
        target.putLong(at, sum);
      } else {
        target.putInt(at, (int) sum);
      }
    }

    private long number(Versions versions, ColumnVector[] vectors, int version) {
      ColumnVector vector = vectors[versions.page(version)];
      int row = versions.row(version);
      return wide ? vector.getLong(row) : vector.getInt(row);
    }
  }
}

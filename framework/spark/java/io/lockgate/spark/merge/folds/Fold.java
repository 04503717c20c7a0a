package io.lockgate.spark.merge.folds;

import io.lockgate.spark.merge.MergePlan;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnVector;

/**
 * The merge of one column of all keys of a batch. No row is a deletion. A key's value is that of
 * one row, or is computed into the fold's own vector.
 */
public abstract class Fold {
  final DataType type;
  private final int mostRows;
  private OnHeapColumnVector made;

  Fold(DataType type, int mostRows) {
    this.type = type;
    this.mostRows = mostRows;
  }

  /** The fold of a function of a merge plan, for batches of {@code mostRows}. */
  public static Fold of(MergePlan.Column plan, DataType type, int mostRows) {
    return switch (plan.function()) {
      case "last", "last_value", "set" -> new RowSelectionFold.Last(type);
      case "last_non_null_value" -> new RowSelectionFold.LastNonNull(type);
      case "first_value" -> new RowSelectionFold.First(type);
      case "first_non_null_value" -> new RowSelectionFold.FirstNonNull(type);
      case "min", "bool_and" -> Extremes.of(type, -1);
      case "max", "bool_or" -> Extremes.of(type, 1);
      case "sum" -> Sums.ofType(plan, type, mostRows);
      default -> new Computed(plan, type, mostRows, null);
    };
  }

  /** The fold of a function in a sequence group, or of a column that orders the group. */
  public static Fold inGroup(MergePlan.Column plan, DataType type, int mostRows, GroupOrder group) {
    return switch (plan.function()) {
      case "sequence", "set", "last_value" -> new NewestInGroup(type, group);
      default -> new Computed(plan, type, mostRows, group);
    };
  }

  /** The fold of a column that no function is for: the value of the newest row. */
  public static Fold newest(DataType type) {
    return new RowSelectionFold.Last(type);
  }

  /** The fold that sets the same byte for every key. */
  public static Fold constant(byte value, DataType type, int mostRows) {
    return new Constant(value, type, mostRows);
  }

  /**
   * Sets, at the place of each key, where its value is: {@code sources} gets the number of a
   * vector, {@code rows} the number of a value in it. {@code vectors} are those of the versions'
   * pages; the number of computed values' vector is {@code vectors.length}.
   */
  public abstract void fold(Versions versions, ColumnVector[] vectors, int[] sources, int[] rows);

  /** Computed values, until {@link #clear()}; null if there are none. */
  public final ColumnVector made() {
    return made;
  }

  /** Forgets computed values. */
  public final void clear() {
    if (made != null) {
      made.reset();
    }
  }

  /** The vector of computed values; it takes memory with the first of them. */
  final OnHeapColumnVector target() {
    if (made == null) {
      made = new OnHeapColumnVector(mostRows, type);
    }
    return made;
  }

  /** One byte for all keys. */
  private static final class Constant extends Fold {
    private final byte value;

    Constant(byte value, DataType type, int mostRows) {
      super(type, mostRows);
      this.value = value;
    }

    @Override
    public void fold(Versions versions, ColumnVector[] vectors, int[] sources, int[] rows) {
      target().putByte(0, value);
      for (int key = 0; key < versions.keys(); key++) {
        sources[versions.position(key)] = vectors.length;
        rows[versions.position(key)] = 0;
      }
    }
  }
}

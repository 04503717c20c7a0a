package io.lockgate.spark.merge.folds;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnVector;

/** Folds that pick one of the rows of a key. */
abstract class RowSelectionFold extends Fold {
  RowSelectionFold(DataType type) {
    super(type, 0);
  }

  @Override
  public final void fold(Versions versions, ColumnVector[] vectors, int[] sources, int[] rows) {
    for (int key = 0; key < versions.keys(); key++) {
      int picked = pick(versions, vectors, versions.first(key), versions.last(key));
      int position = versions.position(key);
      sources[position] = versions.page(picked);
      rows[position] = versions.row(picked);
    }
  }

  /** The number of the version whose value stays, of those from {@code first} to {@code last}. */
  abstract int pick(Versions versions, ColumnVector[] vectors, int first, int last);

  static boolean isNull(Versions versions, ColumnVector[] vectors, int version) {
    return vectors[versions.page(version)].isNullAt(versions.row(version));
  }

  /** The newest row's. */
  static final class Last extends RowSelectionFold {
    Last(DataType type) {
      super(type);
    }

    @Override
    int pick(Versions versions, ColumnVector[] vectors, int first, int last) {
      return last;
    }
  }

  /** The newest that is not null. */
  static final class LastNonNull extends RowSelectionFold {
    LastNonNull(DataType type) {
      super(type);
    }

    @Override
    int pick(Versions versions, ColumnVector[] vectors, int first, int last) {
      for (int version = last; version > first; version--) {
        if (!isNull(versions, vectors, version)) {
          return version;
        }
      }
      return first;
    }
  }

  /** The oldest row's. */
  static final class First extends RowSelectionFold {
    First(DataType type) {
      super(type);
    }

    @Override
    int pick(Versions versions, ColumnVector[] vectors, int first, int last) {
      return first;
    }
  }

  /** The oldest that is not null. */
  static final class FirstNonNull extends RowSelectionFold {
    FirstNonNull(DataType type) {
      super(type);
    }

    @Override
    int pick(Versions versions, ColumnVector[] vectors, int first, int last) {
      for (int version = first; version < last; version++) {
        if (!isNull(versions, vectors, version)) {
          return version;
        }
      }
      return last;
    }
  }
}

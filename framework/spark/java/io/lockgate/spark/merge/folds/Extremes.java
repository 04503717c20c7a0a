package io.lockgate.spark.merge.folds;

import io.lockgate.spark.merge.functions.Order;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatchRow;

/** Folds that pick the least or the greatest value; of equal ones the oldest. */
abstract class Extremes extends RowSelectionFold {
  private final int sign;

  private Extremes(DataType type, int sign) {
    super(type);
    this.sign = sign;
  }

  /** The fold of a type; {@code sign} is below 0 for the least value. */
  static Extremes of(DataType type, int sign) {
    if (type instanceof IntegerType || type instanceof DateType) {
      return new Ints(type, sign);
    } else if (type instanceof LongType
        || type instanceof TimestampType
        || type instanceof TimestampNTZType) {
      return new Longs(type, sign);
    } else if (type instanceof DoubleType) {
      return new Doubles(type, sign);
    }
    return new Others(type, sign);
  }

  @Override
  final int pick(Versions versions, ColumnVector[] vectors, int first, int last) {
    int picked = -1;
    for (int version = first; version <= last; version++) {
      if (!isNull(versions, vectors, version)
          && (picked < 0 || sign * compare(versions, vectors, version, picked) > 0)) {
        picked = version;
      }
    }
    return picked < 0 ? last : picked;
  }

  /** Compares two values that are not null. */
  abstract int compare(Versions versions, ColumnVector[] vectors, int left, int right);

  private static final class Ints extends Extremes {
    Ints(DataType type, int sign) {
      super(type, sign);
    }

    @Override
    int compare(Versions versions, ColumnVector[] vectors, int left, int right) {
      return Integer.compare(
          vectors[versions.page(left)].getInt(versions.row(left)),
          vectors[versions.page(right)].getInt(versions.row(right)));
    }
  }

  private static final class Longs extends Extremes {
    Longs(DataType type, int sign) {
      super(type, sign);
    }

    @Override
    int compare(Versions versions, ColumnVector[] vectors, int left, int right) {
      return Long.compare(
          vectors[versions.page(left)].getLong(versions.row(left)),
          vectors[versions.page(right)].getLong(versions.row(right)));
    }
  }

  private static final class Doubles extends Extremes {
    Doubles(DataType type, int sign) {
      super(type, sign);
    }

    @Override
    int compare(Versions versions, ColumnVector[] vectors, int left, int right) {
      return Double.compare(
          vectors[versions.page(left)].getDouble(versions.row(left)),
          vectors[versions.page(right)].getDouble(versions.row(right)));
    }
  }

  private static final class Others extends Extremes {
    Others(DataType type, int sign) {
      super(type, sign);
    }

    @Override
    int compare(Versions versions, ColumnVector[] vectors, int left, int right) {
      return Order.compare(value(versions, vectors, left), value(versions, vectors, right));
    }

    private Object value(Versions versions, ColumnVector[] vectors, int version) {
      return Computed.value(
          new ColumnarBatchRow(new ColumnVector[] {vectors[versions.page(version)]}),
          versions.row(version),
          type);
    }
  }
}

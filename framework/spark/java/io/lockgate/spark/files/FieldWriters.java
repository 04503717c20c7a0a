package io.lockgate.spark.files;

import java.math.BigDecimal;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ListColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MapColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MultiValuedColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** Puts Spark's values into ORC's vectors, one writer for each type. */
public final class FieldWriters {
  private FieldWriters() {}

  /** Writes one value that is not null. */
  @FunctionalInterface
  public interface ValueWriter {
    void write(SpecializedGetters from, int ordinal, ColumnVector to, int at);
  }

  /** Writes a value or a null. */
  public static void write(
      ValueWriter writer, SpecializedGetters from, int ordinal, ColumnVector to, int at) {
    if (from.isNullAt(ordinal)) {
      to.noNulls = false;
      to.isNull[at] = true;
    } else {
      writer.write(from, ordinal, to, at);
    }
  }

  public static ValueWriter of(DataType type) {
    if (type instanceof IntegerType || type instanceof DateType) {
      return (from, ordinal, to, at) -> ((LongColumnVector) to).vector[at] = from.getInt(ordinal);
    } else if (type instanceof LongType) {
      return (from, ordinal, to, at) -> ((LongColumnVector) to).vector[at] = from.getLong(ordinal);
    } else if (type instanceof StringType) {
      return FieldWriters::text;
    } else if (type instanceof DoubleType) {
      return (from, ordinal, to, at) ->
          ((DoubleColumnVector) to).vector[at] = from.getDouble(ordinal);
    } else if (type instanceof FloatType) {
      return (from, ordinal, to, at) ->
          ((DoubleColumnVector) to).vector[at] = from.getFloat(ordinal);
    } else if (type instanceof DecimalType decimal) {
      return decimal(decimal.precision(), decimal.scale());
    } else if (type instanceof BooleanType) {
      return (from, ordinal, to, at) ->
          ((LongColumnVector) to).vector[at] = from.getBoolean(ordinal) ? 1 : 0;
    } else if (type instanceof ShortType) {
      return (from, ordinal, to, at) -> ((LongColumnVector) to).vector[at] = from.getShort(ordinal);
    } else if (type instanceof ByteType) {
      return (from, ordinal, to, at) -> ((LongColumnVector) to).vector[at] = from.getByte(ordinal);
    } else if (type instanceof TimestampType || type instanceof TimestampNTZType) {
      return FieldWriters::timestamp;
    } else if (type instanceof BinaryType) {
      return (from, ordinal, to, at) -> {
        byte[] value = from.getBinary(ordinal);
        ((BytesColumnVector) to).setVal(at, value, 0, value.length);
      };
    } else if (type instanceof ArrayType array) {
      return list(of(array.elementType()));
    } else if (type instanceof MapType map) {
      return map(of(map.keyType()), of(map.valueType()));
    } else if (type instanceof StructType struct) {
      return struct(struct);
    }
    throw new IllegalArgumentException("type " + type.sql() + " cannot be kept in an ORC file");
  }

  private static void text(SpecializedGetters from, int ordinal, ColumnVector to, int at) {
    UTF8String value = from.getUTF8String(ordinal);
    BytesColumnVector vector = (BytesColumnVector) to;
    int length = value.numBytes();
    vector.ensureValPreallocated(length);
    value.writeToMemory(
        vector.getValPreallocatedBytes(),
        Platform.BYTE_ARRAY_OFFSET + vector.getValPreallocatedStart());
    vector.setValPreallocated(at, length);
  }

  private static ValueWriter decimal(int precision, int scale) {
    return (from, ordinal, to, at) -> {
      BigDecimal value = from.getDecimal(ordinal, precision, scale).toJavaBigDecimal();
      ((DecimalColumnVector) to).set(at, HiveDecimal.create(value));
    };
  }

  private static void timestamp(SpecializedGetters from, int ordinal, ColumnVector to, int at) {
    long micros = from.getLong(ordinal);
    if (micros < 0 && micros >= -999_000L) {
      // ORC keeps seconds rounded towards zero and a fraction: here its readers would find the
      // value one second later.
      throw new IllegalArgumentException(
          "an ORC file cannot hold a timestamp with a fraction in the second before"
              + " 1970-01-01 00:00:00 (microseconds "
              + micros
              + ")");
    }
    TimestampColumnVector vector = (TimestampColumnVector) to;
    vector.time[at] = Math.floorDiv(micros, 1000L);
    vector.nanos[at] = (int) Math.floorMod(micros, 1_000_000L) * 1000;
  }

  private static ValueWriter list(ValueWriter element) {
    return (from, ordinal, to, at) -> {
      ArrayData values = from.getArray(ordinal);
      ListColumnVector vector = (ListColumnVector) to;
      int first = reserve(vector, at, values.numElements(), vector.child);
      for (int i = 0; i < values.numElements(); i++) {
        write(element, values, i, vector.child, first + i);
      }
    };
  }

  private static ValueWriter map(ValueWriter key, ValueWriter value) {
    return (from, ordinal, to, at) -> {
      MapData entries = from.getMap(ordinal);
      MapColumnVector vector = (MapColumnVector) to;
      int first = reserve(vector, at, entries.numElements(), vector.keys, vector.values);
      for (int i = 0; i < entries.numElements(); i++) {
        write(key, entries.keyArray(), i, vector.keys, first + i);
        write(value, entries.valueArray(), i, vector.values, first + i);
      }
    };
  }

  private static int reserve(
      MultiValuedColumnVector vector, int at, int count, ColumnVector... children) {
    int first = vector.childCount;
    vector.offsets[at] = first;
    vector.lengths[at] = count;
    vector.childCount += count;
    for (ColumnVector child : children) {
      if (child.isNull.length < vector.childCount) {
        child.ensureSize(Math.max(2 * child.isNull.length, vector.childCount), true);
      }
    }
    return first;
  }

  private static ValueWriter struct(StructType type) {
    ValueWriter[] writers = new ValueWriter[type.length()];
    for (int i = 0; i < writers.length; i++) {
      writers[i] = of(type.apply(i).dataType());
    }
    return (from, ordinal, to, at) -> {
      InternalRow row = from.getStruct(ordinal, writers.length);
      StructColumnVector vector = (StructColumnVector) to;
      for (int i = 0; i < writers.length; i++) {
        write(writers[i], row, i, vector.fields[i], at);
      }
    };
  }
}

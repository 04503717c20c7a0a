package io.lockgate.spark.files;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.io.api.RecordConsumer;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.TimestampLogicalTypeAnnotation;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.parquet.schema.Type;
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
import org.apache.spark.sql.types.Decimal;
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

/**
 * Gives Spark's values to Parquet as the schema of a file says, one writer for each type.
 *
 * <p>A timestamp in milliseconds loses the rest of its microseconds, as in Paimon's writers.
 */
public final class ParquetFieldWriters {
  private static final int INT96_BYTES = 12;
  private static final long JULIAN_DAY_OF_EPOCH = 2_440_588L;
  private static final long MICROS_OF_DAY = TimeUnit.DAYS.toMicros(1);

  private ParquetFieldWriters() {}

  /** Writes one value that is not null. */
  @FunctionalInterface
  public interface ValueWriter {
    void write(SpecializedGetters from, int ordinal, RecordConsumer to);
  }

  /** Writes a value as a field of a group, which has none for a null. */
  public static void write(
      ValueWriter writer,
      SpecializedGetters from,
      int ordinal,
      RecordConsumer to,
      String name,
      int index) {
    if (!from.isNullAt(ordinal)) {
      to.startField(name, index);
      writer.write(from, ordinal, to);
      to.endField(name, index);
    }
  }

  /** The writer of values of a type, which a file stores as {@code stored}. */
  public static ValueWriter of(DataType type, Type stored) {
    if (type instanceof IntegerType || type instanceof DateType) {
      return (from, ordinal, to) -> to.addInteger(from.getInt(ordinal));
    } else if (type instanceof LongType) {
      return (from, ordinal, to) -> to.addLong(from.getLong(ordinal));
    } else if (type instanceof StringType) {
      return (from, ordinal, to) ->
          to.addBinary(Binary.fromReusedByteArray(from.getUTF8String(ordinal).getBytes()));
    } else if (type instanceof DoubleType) {
      return (from, ordinal, to) -> to.addDouble(from.getDouble(ordinal));
    } else if (type instanceof FloatType) {
      return (from, ordinal, to) -> to.addFloat(from.getFloat(ordinal));
    } else if (type instanceof DecimalType decimal) {
      return decimal(decimal.precision(), decimal.scale(), stored.asPrimitiveType());
    } else if (type instanceof BooleanType) {
      return (from, ordinal, to) -> to.addBoolean(from.getBoolean(ordinal));
    } else if (type instanceof ShortType) {
      return (from, ordinal, to) -> to.addInteger(from.getShort(ordinal));
    } else if (type instanceof ByteType) {
      return (from, ordinal, to) -> to.addInteger(from.getByte(ordinal));
    } else if (type instanceof TimestampType || type instanceof TimestampNTZType) {
      return timestamp(stored.asPrimitiveType());
    } else if (type instanceof BinaryType) {
      return (from, ordinal, to) ->
          to.addBinary(Binary.fromReusedByteArray(from.getBinary(ordinal)));
    } else if (type instanceof ArrayType array) {
      return list(array, stored.asGroupType());
    } else if (type instanceof MapType map) {
      return map(map, stored.asGroupType());
    } else if (type instanceof StructType struct) {
      return struct(struct, stored.asGroupType());
    }
    throw new IllegalArgumentException("type " + type.sql() + " cannot be kept in a Parquet file");
  }

  private static ValueWriter decimal(int precision, int scale, PrimitiveType stored) {
    if (stored.getPrimitiveTypeName() == PrimitiveTypeName.INT32) {
      return (from, ordinal, to) ->
          to.addInteger((int) from.getDecimal(ordinal, precision, scale).toUnscaledLong());
    } else if (stored.getPrimitiveTypeName() == PrimitiveTypeName.INT64) {
      return (from, ordinal, to) ->
          to.addLong(from.getDecimal(ordinal, precision, scale).toUnscaledLong());
    }
    int length = stored.getTypeLength();
    return (from, ordinal, to) ->
        to.addBinary(
            Binary.fromConstantByteArray(
                padded(from.getDecimal(ordinal, precision, scale), length)));
  }

  private static byte[] padded(Decimal value, int length) {
    byte[] unscaled = value.toJavaBigDecimal().unscaledValue().toByteArray();
    byte[] bytes = new byte[length];
    Arrays.fill(bytes, 0, length - unscaled.length, (byte) (unscaled[0] < 0 ? -1 : 0));
    System.arraycopy(unscaled, 0, bytes, length - unscaled.length, unscaled.length);
    return bytes;
  }

  private static ValueWriter timestamp(PrimitiveType stored) {
    if (stored.getPrimitiveTypeName() == PrimitiveTypeName.INT96) {
      return (from, ordinal, to) -> to.addBinary(int96(from.getLong(ordinal)));
    }
    boolean millis =
        stored.getLogicalTypeAnnotation() instanceof TimestampLogicalTypeAnnotation timestamp
            && timestamp.getUnit() == LogicalTypeAnnotation.TimeUnit.MILLIS;
    return millis
        ? (from, ordinal, to) -> to.addLong(Math.floorDiv(from.getLong(ordinal), 1000L))
        : (from, ordinal, to) -> to.addLong(from.getLong(ordinal));
  }

  /** Nanoseconds of the day, and the Julian day. */
  private static Binary int96(long micros) {
    ByteBuffer bytes = ByteBuffer.allocate(INT96_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    bytes.putLong(Math.floorMod(micros, MICROS_OF_DAY) * 1000L);
    bytes.putInt((int) (Math.floorDiv(micros, MICROS_OF_DAY) + JULIAN_DAY_OF_EPOCH));
    return Binary.fromConstantByteArray(bytes.array());
  }

  private static ValueWriter list(ArrayType type, GroupType stored) {
    GroupType entry = stored.getType(0).asGroupType();
    Type elementType = entry.getType(0);
    ValueWriter element = of(type.elementType(), elementType);
    return (from, ordinal, to) -> {
      ArrayData values = from.getArray(ordinal);
      to.startGroup();
      if (values.numElements() > 0) {
        to.startField(entry.getName(), 0);
        for (int i = 0; i < values.numElements(); i++) {
          to.startGroup();
          write(element, values, i, to, elementType.getName(), 0);
          to.endGroup();
        }
        to.endField(entry.getName(), 0);
      }
      to.endGroup();
    };
  }

  private static ValueWriter map(MapType type, GroupType stored) {
    GroupType entry = stored.getType(0).asGroupType();
    ValueWriter key = of(type.keyType(), entry.getType(0));
    ValueWriter value = of(type.valueType(), entry.getType(1));
    return (from, ordinal, to) -> {
      MapData entries = from.getMap(ordinal);
      to.startGroup();
      if (entries.numElements() > 0) {
        to.startField(entry.getName(), 0);
        for (int i = 0; i < entries.numElements(); i++) {
          to.startGroup();
          write(key, entries.keyArray(), i, to, entry.getFieldName(0), 0);
          write(value, entries.valueArray(), i, to, entry.getFieldName(1), 1);
          to.endGroup();
        }
        to.endField(entry.getName(), 0);
      }
      to.endGroup();
    };
  }

  private static ValueWriter struct(StructType type, GroupType stored) {
    ValueWriter[] writers = new ValueWriter[type.length()];
    for (int i = 0; i < writers.length; i++) {
      writers[i] = of(type.apply(i).dataType(), stored.getType(i));
    }
    return (from, ordinal, to) -> {
      InternalRow row = from.getStruct(ordinal, writers.length);
      to.startGroup();
      for (int i = 0; i < writers.length; i++) {
        write(writers[i], row, i, to, stored.getFieldName(i), i);
      }
      to.endGroup();
    };
  }
}

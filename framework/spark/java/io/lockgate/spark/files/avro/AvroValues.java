package io.lockgate.spark.files.avro;

import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericFixed;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.util.Utf8;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
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
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Turns values of Avro into Spark's.
 *
 * <p>Timestamps with and without a zone count from the same instant: Paimon writes those with a
 * local zone as {@code local-timestamp}, the others as {@code timestamp}. A map whose keys are no
 * texts is a list of records of a key and a value.
 */
final class AvroValues {
  private static final int MILLI_MICROS = 1000;

  private AvroValues() {}

  /** Turns one value of Avro into Spark's. */
  @FunctionalInterface
  interface Conversion {
    Object convert(Object value) throws IOException;
  }

  /**
   * The conversion of a column's values; {@code name} is for messages.
   *
   * @throws IOException if the file's type cannot be that of the column
   */
  static Conversion conversion(Schema stored, DataType type, String name) throws IOException {
    Schema schema = present(stored, name);
    Conversion conversion = ofPresent(schema, type, name);
    return value -> value == null ? null : conversion.convert(value);
  }

  private static Schema present(Schema schema, String name) throws IOException {
    if (schema.getType() != Schema.Type.UNION) {
      return schema;
    }
    List<Schema> others =
        schema.getTypes().stream().filter(one -> one.getType() != Schema.Type.NULL).toList();
    if (others.size() != 1) {
      throw mismatch(schema, name);
    }
    return others.get(0);
  }

  private static Conversion ofPresent(Schema schema, DataType type, String name)
      throws IOException {
    return switch (schema.getType()) {
      case BOOLEAN -> accept(type instanceof BooleanType, schema, name, value -> value);
      case INT -> ofInt(schema, type, name);
      case LONG -> ofLong(schema, type, name);
      case FLOAT -> accept(type instanceof FloatType, schema, name, value -> value);
      case DOUBLE -> accept(type instanceof DoubleType, schema, name, value -> value);
      case STRING -> accept(type instanceof StringType, schema, name, AvroValues::text);
      case BYTES, FIXED -> ofBytes(schema, type, name);
      case ARRAY ->
          type instanceof MapType map
              ? ofPairs(schema.getElementType(), map, name)
              : ofArray(schema, type, name);
      case MAP -> ofMap(schema, type, name);
      case RECORD -> ofRecord(schema, type, name);
      default -> throw mismatch(schema, name);
    };
  }

  private static Conversion accept(boolean fits, Schema schema, String name, Conversion conversion)
      throws IOException {
    if (!fits) {
      throw mismatch(schema, name);
    }
    return conversion;
  }

  private static IOException mismatch(Schema schema, String name) {
    return new IOException(
        "column " + name + " has the type " + schema.getType() + " of Avro, which is not its own");
  }

  private static Conversion ofInt(Schema schema, DataType type, String name) throws IOException {
    if (type instanceof ByteType) {
      return value -> (byte) within((Integer) value, Byte.MIN_VALUE, Byte.MAX_VALUE, name);
    } else if (type instanceof ShortType) {
      return value -> (short) within((Integer) value, Short.MIN_VALUE, Short.MAX_VALUE, name);
    }
    boolean fits = type instanceof IntegerType || type instanceof DateType;
    return accept(fits, schema, name, value -> (Integer) value);
  }

  private static int within(int value, int least, int most, String name) throws IOException {
    if (value < least || value > most) {
      throw new IOException("it holds a value that is too large for column " + name);
    }
    return value;
  }

  private static Conversion ofLong(Schema schema, DataType type, String name) throws IOException {
    if (type instanceof TimestampType || type instanceof TimestampNTZType) {
      String unit = String.valueOf(schema.getProp("logicalType"));
      if (unit.endsWith("timestamp-millis")) {
        return value -> Math.multiplyExact((Long) value, MILLI_MICROS);
      }
      return accept(unit.endsWith("timestamp-micros"), schema, name, value -> (Long) value);
    }
    return accept(type instanceof LongType, schema, name, value -> (Long) value);
  }

  private static Object text(Object value) throws IOException {
    Utf8 text = (Utf8) value;
    UTF8String copy = UTF8String.fromBytes(Arrays.copyOf(text.getBytes(), text.getByteLength()));
    if (!copy.isValid()) {
      throw new IOException("it holds a text that is not UTF-8");
    }
    return copy;
  }

  private static Conversion ofBytes(Schema schema, DataType type, String name) throws IOException {
    if (type instanceof DecimalType decimal) {
      return value ->
          Decimal.apply(
              new BigDecimal(new BigInteger(bytes(value)), decimal.scale()),
              decimal.precision(),
              decimal.scale());
    }
    return accept(type instanceof BinaryType, schema, name, AvroValues::bytes);
  }

  private static byte[] bytes(Object value) {
    if (value instanceof GenericFixed fixed) {
      return fixed.bytes().clone();
    }
    ByteBuffer buffer = ((ByteBuffer) value).duplicate();
    byte[] bytes = new byte[buffer.remaining()];
    buffer.get(bytes);
    return bytes;
  }

  private static Conversion ofArray(Schema schema, DataType type, String name) throws IOException {
    if (!(type instanceof ArrayType array)) {
      throw mismatch(schema, name);
    }
    Conversion element = conversion(schema.getElementType(), array.elementType(), name);
    return value -> new GenericArrayData(converted((Collection<?>) value, element));
  }

  private static Object[] converted(Collection<?> values, Conversion conversion)
      throws IOException {
    Object[] converted = new Object[values.size()];
    int next = 0;
    for (Object value : values) {
      converted[next++] = conversion.convert(value);
    }
    return converted;
  }

  private static Conversion ofMap(Schema schema, DataType type, String name) throws IOException {
    if (!(type instanceof MapType map) || !(map.keyType() instanceof StringType)) {
      throw mismatch(schema, name);
    }
    Conversion value = conversion(schema.getValueType(), map.valueType(), name);
    return entries -> {
      Map<?, ?> all = (Map<?, ?>) entries;
      return new ArrayBasedMapData(
          new GenericArrayData(converted(all.keySet(), AvroValues::text)),
          new GenericArrayData(converted(all.values(), value)));
    };
  }

  private static Conversion ofPairs(Schema pair, MapType map, String name) throws IOException {
    if (pair.getType() != Schema.Type.RECORD
        || pair.getField("key") == null
        || pair.getField("value") == null) {
      throw mismatch(pair, name);
    }
    Schema.Field first = pair.getField("key");
    Schema.Field second = pair.getField("value");
    Conversion key = conversion(first.schema(), map.keyType(), name);
    Conversion value = conversion(second.schema(), map.valueType(), name);
    return entries -> {
      Collection<?> all = (Collection<?>) entries;
      Object[] keys = converted(all, entry -> key.convert(field(entry, first)));
      Object[] values = converted(all, entry -> value.convert(field(entry, second)));
      return new ArrayBasedMapData(new GenericArrayData(keys), new GenericArrayData(values));
    };
  }

  private static Object field(Object record, Schema.Field field) {
    return ((GenericRecord) record).get(field.pos());
  }

  private static Conversion ofRecord(Schema schema, DataType type, String name) throws IOException {
    if (!(type instanceof StructType struct)) {
      throw mismatch(schema, name);
    }
    StructField[] fields = struct.fields();
    Conversion[] conversions = new Conversion[fields.length];
    Schema.Field[] stored = new Schema.Field[fields.length];
    for (int i = 0; i < fields.length; i++) {
      String path = name + "." + fields[i].name();
      stored[i] = schema.getField(fields[i].name());
      if (stored[i] == null) {
        throw new IOException("it has no column " + path);
      }
      conversions[i] = conversion(stored[i].schema(), fields[i].dataType(), path);
    }
    return value -> {
      GenericInternalRow row = new GenericInternalRow(fields.length);
      for (int i = 0; i < fields.length; i++) {
        row.update(i, conversions[i].convert(field(value, stored[i])));
      }
      return row;
    };
  }
}

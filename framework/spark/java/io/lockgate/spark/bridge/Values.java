package io.lockgate.spark.bridge;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.ColumnDefaultValue;
import org.apache.spark.sql.connector.expressions.LiteralValue;
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
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.util.SchemaUtils;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Spark's internal values as JSON and back, without loss: decimals are plain strings, dates days,
 * timestamps microseconds, binaries base64, NaN and the infinities strings. An array is an array, a
 * struct an object, a map an object if its keys are strings and else a list of pairs.
 */
public final class Values {
  private static final String DEFAULT = "CURRENT_DEFAULT";
  private static final String OPAQUE = "lockgate.opaque";
  private static final Set<String> SPECIAL = Set.of("NaN", "Infinity", "-Infinity");
  private static final JsonNodeFactory MAKE = JsonNodeFactory.instance;

  private Values() {}

  public static JsonNode typeToJson(DataType type) {
    try {
      return Bridge.JSON.readTree(type.json());
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(e);
    }
  }

  /**
   * The type of a column that is to be stored; a collation cannot be, and a type's JSON says
   * nothing of it.
   */
  public static JsonNode storedTypeToJson(String column, DataType type) {
    if (SchemaUtils.hasNonUTF8BinaryCollation(type)) {
      throw Bridge.failure(
          "Column '"
              + column
              + "' cannot be stored with a collation: declare it as STRING, "
              + "and write COLLATE where it is compared or sorted");
    }
    return typeToJson(type);
  }

  /** The columns of a table; those of types that Spark does not have are opaque. */
  public static StructType schemaFromJson(JsonNode schema) {
    StructType parsed =
        (StructType) DataType.fromJson(schema.isTextual() ? schema.asText() : schema.toString());
    return new StructType(
        Arrays.stream(parsed.fields()).map(Values::withOpaque).toArray(StructField[]::new));
  }

  private static StructField withOpaque(StructField field) {
    if (!field.metadata().contains(OPAQUE)) {
      return field;
    }
    DataType type = new OpaqueType(field.metadata().getString(OPAQUE));
    return new StructField(field.name(), type, field.nullable(), field.metadata());
  }

  /** The fields of a schema as the columns of a table. */
  public static Column[] columns(StructType schema) {
    return Arrays.stream(schema.fields()).map(Values::column).toArray(Column[]::new);
  }

  private static Column column(StructField field) {
    String comment = field.getComment().getOrElse(() -> null);
    if (!field.metadata().contains(DEFAULT)) {
      return Column.create(
          field.name(), field.dataType(), field.nullable(), comment, field.metadata().json());
    }
    // Rows that are there before a column is have null in it, whatever its default.
    ColumnDefaultValue value =
        new ColumnDefaultValue(
            field.metadata().getString(DEFAULT), new LiteralValue<>(null, field.dataType()));
    String metadata =
        new MetadataBuilder().withMetadata(field.metadata()).remove(DEFAULT).build().json();
    return Column.create(
        field.name(), field.dataType(), field.nullable(), comment, value, metadata);
  }

  public static JsonNode toJson(Object value, DataType type) {
    if (value == null || type instanceof NullType) {
      return MAKE.nullNode();
    }
    if (type instanceof BooleanType) {
      return MAKE.booleanNode((Boolean) value);
    }
    if (type instanceof FloatType || type instanceof DoubleType) {
      return number(((Number) value).doubleValue());
    }
    if (type instanceof DecimalType) {
      return MAKE.textNode(((Decimal) value).toJavaBigDecimal().toPlainString());
    }
    if (type instanceof BinaryType) {
      return MAKE.binaryNode((byte[]) value);
    }
    if (value instanceof Number number) {
      return MAKE.numberNode(number.longValue());
    }
    if (type instanceof ArrayType array) {
      return arrayToJson((ArrayData) value, array.elementType());
    }
    if (type instanceof MapType map) {
      return mapToJson((MapData) value, map);
    }
    if (type instanceof StructType struct) {
      return rowToJson((InternalRow) value, struct);
    }
    return MAKE.textNode(value.toString());
  }

  /** The value in one place of a row. */
  public static JsonNode toJson(SpecializedGetters row, int at, DataType type) {
    return row.isNullAt(at) ? MAKE.nullNode() : toJson(row.get(at, type), type);
  }

  /** A double, or the name of one that JSON has no number for. */
  public static JsonNode number(double value) {
    return Double.isFinite(value) ? MAKE.numberNode(value) : MAKE.textNode(Double.toString(value));
  }

  public static ObjectNode rowToJson(InternalRow row, StructType schema) {
    ObjectNode out = MAKE.objectNode();
    StructField[] fields = schema.fields();
    for (int i = 0; i < fields.length; i++) {
      DataType type = fields[i].dataType();
      out.set(fields[i].name(), toJson(row, i, type));
    }
    return out;
  }

  private static ArrayNode arrayToJson(ArrayData array, DataType element) {
    ArrayNode out = MAKE.arrayNode();
    for (int i = 0; i < array.numElements(); i++) {
      out.add(toJson(array, i, element));
    }
    return out;
  }

  private static JsonNode mapToJson(MapData map, MapType type) {
    ArrayNode keys = arrayToJson(map.keyArray(), type.keyType());
    ArrayNode values = arrayToJson(map.valueArray(), type.valueType());
    ObjectNode object = MAKE.objectNode();
    ArrayNode pairs = MAKE.arrayNode();
    for (int i = 0; i < keys.size(); i++) {
      object.set(keys.get(i).asText(), values.get(i));
      pairs.add(MAKE.arrayNode().add(keys.get(i)).add(values.get(i)));
    }
    return type.keyType() instanceof StringType ? object : pairs;
  }

  /** Rows given as lists of values in the order of the schema. */
  public static InternalRow[] rowsFromJson(List<List<JsonNode>> rows, StructType schema) {
    InternalRow[] out = new InternalRow[rows.size()];
    for (int i = 0; i < out.length; i++) {
      List<JsonNode> row = rows.get(i);
      check(row.size() == schema.length(), schema, "not one value for each field");
      Object[] values = new Object[schema.length()];
      for (int at = 0; at < values.length; at++) {
        values[at] = fromJson(row.get(at), schema.apply(at).dataType());
      }
      out[i] = new GenericInternalRow(values);
    }
    return out;
  }

  /**
   * A value in Spark's internal form; those of flat types can be sent to tasks. Nothing is
   * converted: JSON that {@link #toJson} would not write for the type is refused. Messages leave
   * the value out, for it may be of a column that not everybody may see.
   */
  public static Object fromJson(JsonNode value, DataType type) {
    if (value.isNull()) {
      return null;
    }
    if (type instanceof BooleanType) {
      check(value.isBoolean(), type, "not a boolean");
      return value.booleanValue();
    }
    if (type instanceof ByteType) {
      return (byte) whole(value, type, Byte.MIN_VALUE, Byte.MAX_VALUE);
    }
    if (type instanceof ShortType) {
      return (short) whole(value, type, Short.MIN_VALUE, Short.MAX_VALUE);
    }
    if (type instanceof IntegerType || type instanceof DateType) {
      return (int) whole(value, type, Integer.MIN_VALUE, Integer.MAX_VALUE);
    }
    if (type instanceof LongType
        || type instanceof TimestampType
        || type instanceof TimestampNTZType) {
      return whole(value, type, Long.MIN_VALUE, Long.MAX_VALUE);
    }
    if (type instanceof FloatType) {
      return special(value, type) ? Float.parseFloat(value.textValue()) : finiteFloat(value, type);
    }
    if (type instanceof DoubleType) {
      return special(value, type)
          ? Double.parseDouble(value.textValue())
          : finiteDouble(value, type);
    }
    if (type instanceof DecimalType decimal) {
      return decimalFromJson(value, decimal);
    }
    if (type instanceof BinaryType) {
      return bytes(value, type);
    }
    if (type instanceof ArrayType array) {
      return arrayFromJson(value, array);
    }
    if (type instanceof MapType map) {
      return mapFromJson(value, map);
    }
    if (type instanceof StructType struct) {
      return structFromJson(value, struct);
    }
    if (type instanceof StringType) {
      return UTF8String.fromString(text(value, type));
    }
    throw Bridge.failure("Values of type " + type.sql() + " cannot come from Python");
  }

  private static void check(boolean holds, DataType type, String fault) {
    if (!holds) {
      throw Bridge.failure("Python sent an invalid value of type " + type.sql() + ": " + fault);
    }
  }

  private static long whole(JsonNode value, DataType type, long least, long most) {
    check(value.isIntegralNumber(), type, "not a whole number");
    check(value.canConvertToLong(), type, "too large");
    long number = value.longValue();
    check(least <= number && number <= most, type, "too large");
    return number;
  }

  private static boolean special(JsonNode value, DataType type) {
    boolean named = value.isTextual() && SPECIAL.contains(value.textValue());
    check(named || value.isNumber(), type, "not a number");
    return named;
  }

  private static float finiteFloat(JsonNode value, DataType type) {
    // A whole number of JSON may need more digits than a double has, but a float is far from there.
    float number = (float) value.doubleValue();
    check(Float.isFinite(number), type, "too large");
    return number;
  }

  private static double finiteDouble(JsonNode value, DataType type) {
    check(Double.isFinite(value.doubleValue()), type, "too large");
    return value.doubleValue();
  }

  private static Decimal decimalFromJson(JsonNode value, DecimalType type) {
    try {
      BigDecimal exact =
          new BigDecimal(text(value, type)).setScale(type.scale(), RoundingMode.UNNECESSARY);
      check(exact.precision() <= type.precision(), type, "too large");
      return Decimal.apply(exact, type.precision(), type.scale());
    } catch (NumberFormatException malformed) {
      throw Bridge.failure("Python sent an invalid value of type " + type.sql() + ": not a number");
    } catch (ArithmeticException inexact) {
      throw Bridge.failure(
          "Python sent an invalid value of type " + type.sql() + ": too many digits");
    }
  }

  private static String text(JsonNode value, DataType type) {
    check(value.isTextual(), type, "not a text");
    String text = value.textValue();
    // Spark would store a question mark for half of a surrogate pair.
    check(
        StandardCharsets.UTF_8.newEncoder().canEncode(text),
        type,
        "half of a surrogate pair in it");
    return text;
  }

  private static byte[] bytes(JsonNode value, DataType type) {
    String text = text(value, type);
    check(text.length() % 4 == 0, type, "not base64");
    try {
      return Base64.getDecoder().decode(text);
    } catch (IllegalArgumentException malformed) {
      throw Bridge.failure("Python sent an invalid value of type " + type.sql() + ": not base64");
    }
  }

  private static GenericArrayData arrayFromJson(JsonNode values, ArrayType type) {
    check(values.isArray(), type, "not an array");
    Object[] out = new Object[values.size()];
    for (int i = 0; i < out.length; i++) {
      out[i] = fromJson(values.get(i), type.elementType());
    }
    return new GenericArrayData(out);
  }

  private static MapData mapFromJson(JsonNode value, MapType type) {
    List<Object> keys = new ArrayList<>();
    List<Object> values = new ArrayList<>();
    if (type.keyType() instanceof StringType) {
      check(value.isObject(), type, "not an object");
      for (Map.Entry<String, JsonNode> entry : value.properties()) {
        keys.add(fromJson(MAKE.textNode(entry.getKey()), type.keyType()));
        values.add(fromJson(entry.getValue(), type.valueType()));
      }
    } else {
      check(value.isArray(), type, "not an array of pairs");
      for (JsonNode pair : value) {
        check(pair.isArray() && pair.size() == 2, type, "not an array of pairs");
        check(!pair.get(0).isNull(), type, "a key is null");
        keys.add(fromJson(pair.get(0), type.keyType()));
        values.add(fromJson(pair.get(1), type.valueType()));
      }
    }
    return new ArrayBasedMapData(
        new GenericArrayData(keys.toArray()), new GenericArrayData(values.toArray()));
  }

  private static InternalRow structFromJson(JsonNode value, StructType type) {
    check(value.isObject() && value.size() == type.length(), type, "not an object of its fields");
    Object[] values = new Object[type.length()];
    for (int i = 0; i < values.length; i++) {
      StructField field = type.apply(i);
      check(value.has(field.name()), type, "not an object of its fields");
      values[i] = fromJson(value.get(field.name()), field.dataType());
    }
    return new GenericInternalRow(values);
  }
}

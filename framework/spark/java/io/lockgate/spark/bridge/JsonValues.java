package io.lockgate.spark.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
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
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

/** Flat values as the bridge writes them in JSON, to and from Spark's internal form. */
public final class JsonValues {
  private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

  private JsonValues() {}

  public static Serializable toInternal(JsonNode value, DataType type) {
    if (value == null || value.isNull()) {
      return null;
    }
    if (type instanceof StringType) {
      return UTF8String.fromString(value.asText());
    } else if (type instanceof IntegerType || type instanceof DateType) {
      return value.asInt();
    } else if (type instanceof LongType || type instanceof TimestampType || type instanceof TimestampNTZType) {
      return value.asLong();
    } else if (type instanceof ShortType) {
      return (short) value.asInt();
    } else if (type instanceof ByteType) {
      return (byte) value.asInt();
    } else if (type instanceof BooleanType) {
      return value.asBoolean();
    } else if (type instanceof DoubleType) {
      return value.isTextual() ? Double.parseDouble(value.asText()) : value.asDouble();
    } else if (type instanceof FloatType) {
      return value.isTextual() ? Float.parseFloat(value.asText()) : (float) value.asDouble();
    } else if (type instanceof DecimalType decimal) {
      return Decimal.apply(new BigDecimal(value.asText()), decimal.precision(), decimal.scale());
    } else if (type instanceof BinaryType) {
      try {
        return value.binaryValue();
      } catch (IOException failure) {
        throw new UncheckedIOException(failure);
      }
    }
    throw new IllegalArgumentException("no JSON form for values of type " + type.sql());
  }

  public static JsonNode toJson(SpecializedGetters row, int at, DataType type) {
    if (row.isNullAt(at)) {
      return NODES.nullNode();
    }
    if (type instanceof StringType) {
      return NODES.textNode(row.getUTF8String(at).toString());
    } else if (type instanceof IntegerType || type instanceof DateType) {
      return NODES.numberNode(row.getInt(at));
    } else if (type instanceof LongType || type instanceof TimestampType || type instanceof TimestampNTZType) {
      return NODES.numberNode(row.getLong(at));
    } else if (type instanceof ShortType) {
      return NODES.numberNode(row.getShort(at));
    } else if (type instanceof ByteType) {
      return NODES.numberNode(row.getByte(at));
    } else if (type instanceof BooleanType) {
      return NODES.booleanNode(row.getBoolean(at));
    } else if (type instanceof DoubleType) {
      return number(row.getDouble(at));
    } else if (type instanceof FloatType) {
      return number(row.getFloat(at));
    } else if (type instanceof DecimalType decimal) {
      return NODES.textNode(row.getDecimal(at, decimal.precision(), decimal.scale()).toJavaBigDecimal().toPlainString());
    } else if (type instanceof BinaryType) {
      return NODES.binaryNode(row.getBinary(at));
    }
    throw new IllegalArgumentException("no JSON form for values of type " + type.sql());
  }

  /** A double, or the name of one that JSON has no number for. */
  public static JsonNode number(double value) {
    return Double.isFinite(value) ? NODES.numberNode(value) : NODES.textNode(Double.toString(value));
  }
}

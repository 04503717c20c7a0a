package io.lockgate.spark.files;

import org.apache.orc.TypeDescription;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.CharType;
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
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.types.VarcharType;

/** ORC's types for Spark's, as Paimon writes them, with the field ids that Paimon puts on them. */
public final class OrcTypes {
  // Ids of array elements and map entries are derived: Paimon's SpecialFields.
  private static final int NESTED_BASE = Integer.MAX_VALUE / 4;
  private static final int NESTED_DEPTH = 1 << 10;

  private OrcTypes() {}

  /** The ORC type without field ids. */
  public static TypeDescription toOrc(DataType type) {
    if (type instanceof CharType character) {
      return TypeDescription.createChar().withMaxLength(character.length());
    } else if (type instanceof VarcharType varchar) {
      return TypeDescription.createVarchar().withMaxLength(varchar.length());
    } else if (type instanceof StringType) {
      return TypeDescription.createString();
    } else if (type instanceof BooleanType) {
      return TypeDescription.createBoolean();
    } else if (type instanceof ByteType) {
      return TypeDescription.createByte();
    } else if (type instanceof ShortType) {
      return TypeDescription.createShort();
    } else if (type instanceof IntegerType) {
      return TypeDescription.createInt();
    } else if (type instanceof LongType) {
      return TypeDescription.createLong();
    } else if (type instanceof FloatType) {
      return TypeDescription.createFloat();
    } else if (type instanceof DoubleType) {
      return TypeDescription.createDouble();
    } else if (type instanceof DecimalType decimal) {
      return TypeDescription.createDecimal()
          .withScale(decimal.scale())
          .withPrecision(decimal.precision());
    } else if (type instanceof BinaryType) {
      return TypeDescription.createBinary();
    } else if (type instanceof DateType) {
      return TypeDescription.createDate();
    } else if (type instanceof TimestampNTZType) {
      return TypeDescription.createTimestamp();
    } else if (type instanceof TimestampType) {
      return TypeDescription.createTimestampInstant();
    }
    return nested(type, 0, 0, false);
  }

  /** The ORC type with the attribute {@code paimon.id} on it and on all below it that have ids. */
  public static TypeDescription toOrc(DataType type, int fieldId) {
    return withId(type, fieldId, 0);
  }

  private static TypeDescription withId(DataType type, int fieldId, int depth) {
    boolean flat =
        !(type instanceof ArrayType || type instanceof MapType || type instanceof StructType);
    TypeDescription orc = flat ? toOrc(type) : nested(type, fieldId, depth, true);
    return orc.setAttribute(Columns.FIELD_ID, String.valueOf(fieldId));
  }

  private static TypeDescription nested(DataType type, int fieldId, int depth, boolean ids) {
    int step = fieldId * NESTED_DEPTH + depth + 1;
    if (type instanceof ArrayType array) {
      TypeDescription element =
          ids ? withId(array.elementType(), fieldId, depth + 1) : toOrc(array.elementType());
      return TypeDescription.createList(id(element, NESTED_BASE + step, ids));
    } else if (type instanceof MapType map) {
      TypeDescription key = ids ? withId(map.keyType(), fieldId, depth + 1) : toOrc(map.keyType());
      TypeDescription value =
          ids ? withId(map.valueType(), fieldId, depth + 1) : toOrc(map.valueType());
      return TypeDescription.createMap(
          id(key, NESTED_BASE - step, ids), id(value, NESTED_BASE + step, ids));
    } else if (type instanceof StructType struct) {
      TypeDescription orc = TypeDescription.createStruct();
      for (StructField field : struct.fields()) {
        boolean numbered = ids && field.metadata().contains(Columns.FIELD_ID);
        orc.addField(
            field.name(),
            numbered
                ? withId(field.dataType(), (int) field.metadata().getLong(Columns.FIELD_ID), 0)
                : toOrc(field.dataType()));
      }
      return orc;
    }
    throw new IllegalArgumentException("type " + type.sql() + " cannot be kept in an ORC file");
  }

  private static TypeDescription id(TypeDescription type, int id, boolean ids) {
    return ids ? type.setAttribute(Columns.FIELD_ID, String.valueOf(id)) : type;
  }
}

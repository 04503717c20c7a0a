package io.lockgate.spark.merge.functions;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;

/**
 * Values that are equal where those of Spark's internal form are; NaN is equal to NaN, -0.0 is not
 * to 0.0.
 */
final class Frozen {
  private Frozen() {}

  static Object of(Object value, DataType type) {
    if (value instanceof byte[] bytes) {
      return ByteBuffer.wrap(bytes);
    } else if (value instanceof ArrayData array) {
      return elements(array, ((ArrayType) type).elementType());
    } else if (value instanceof MapData map) {
      MapType kinds = (MapType) type;
      return List.of(
          elements(map.keyArray(), kinds.keyType()), elements(map.valueArray(), kinds.valueType()));
    } else if (value instanceof InternalRow row) {
      StructType fields = (StructType) type;
      List<Object> all = new ArrayList<>();
      for (int i = 0; i < fields.length(); i++) {
        all.add(field(row, i, fields));
      }
      return all;
    }
    return value;
  }

  /** A field of a row. */
  static Object field(InternalRow row, int at, StructType fields) {
    return row.isNullAt(at)
        ? null
        : of(row.get(at, fields.apply(at).dataType()), fields.apply(at).dataType());
  }

  private static List<Object> elements(ArrayData array, DataType type) {
    List<Object> all = new ArrayList<>();
    for (int i = 0; i < array.numElements(); i++) {
      all.add(of(element(array, i, type), type));
    }
    return all;
  }

  /** An element of an array, null for none. */
  static Object element(ArrayData array, int at, DataType type) {
    return array.isNullAt(at) ? null : array.get(at, type);
  }
}

package io.lockgate.spark.files.batches;

import java.util.Map;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * A type in a schema of a table: the field ids of the columns inside it tell which columns of two
 * schemas are the same. Without ids their names do.
 *
 * @param ids the field ids by path in the column, each part after a separator
 * @param path where the type stands in its column
 */
public record StoredType(DataType type, Map<String, Integer> ids, String path) {
  /** Between the parts of a path: no column's name holds it. */
  public static final String SEPARATOR = "\u001f";

  /** A type without ids. */
  public static StoredType named(DataType type) {
    return new StoredType(type, Map.of(), "");
  }

  private StoredType part(String name, DataType part) {
    return new StoredType(part, ids, path + SEPARATOR + name);
  }

  StoredType field(StructField field) {
    return part(field.name(), field.dataType());
  }

  StoredType element() {
    return part("element", ((ArrayType) type).elementType());
  }

  StoredType key() {
    return part("key", ((MapType) type).keyType());
  }

  StoredType value() {
    return part("value", ((MapType) type).valueType());
  }

  private Integer id(String field) {
    return ids.get(path + SEPARATOR + field);
  }

  /** The position in this struct of the field that another struct calls {@code name}, or -1. */
  int indexOf(String name, StoredType other) {
    Integer wanted = other.id(name);
    StructField[] fields = ((StructType) type).fields();
    for (int i = 0; i < fields.length; i++) {
      Integer own = id(fields[i].name());
      boolean same =
          wanted == null || own == null ? fields[i].name().equals(name) : own.equals(wanted);
      if (same) {
        return i;
      }
    }
    return -1;
  }

  /**
   * Tells whether this type is another one, or has some of the fields of its structs: a reader may
   * then ask for it by its names.
   */
  public boolean isPartOf(StoredType whole) {
    if (type instanceof StructType some && whole.type instanceof StructType all) {
      for (StructField field : some.fields()) {
        int index = whole.indexOf(field.name(), this);
        if (index < 0
            || !all.fields()[index].name().equals(field.name())
            || !field(field).isPartOf(whole.field(all.fields()[index]))) {
          return false;
        }
      }
      return true;
    } else if (type instanceof ArrayType && whole.type instanceof ArrayType) {
      return element().isPartOf(whole.element());
    } else if (type instanceof MapType && whole.type instanceof MapType) {
      return key().isPartOf(whole.key()) && value().isPartOf(whole.value());
    }
    return type.equals(whole.type);
  }
}

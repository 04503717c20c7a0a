package io.lockgate.spark.bridge;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.UserDefinedType;

/**
 * A type of a column that Spark does not have, or Lockgate does not know. It is shown by its text;
 * Python refuses scans and writes of the column.
 *
 * <p>Spark's own types are closed, and PySpark knows no others but those of users.
 */
public final class OpaqueType extends UserDefinedType<Object> {
  private static final long serialVersionUID = 1L;

  private final String text;

  OpaqueType(String text) {
    this.text = text;
  }

  @Override
  public DataType sqlType() {
    return DataTypes.NullType;
  }

  @Override
  public String pyUDT() {
    return "lockgate.framework.spark.session.opaque_type.OpaqueType";
  }

  @Override
  public Object serialize(Object value) {
    throw new UnsupportedOperationException(text);
  }

  @Override
  public Object deserialize(Object value) {
    throw new UnsupportedOperationException(text);
  }

  @Override
  public Class<Object> userClass() {
    return Object.class;
  }

  @Override
  public String typeName() {
    return text;
  }

  @Override
  public String catalogString() {
    return text;
  }

  @Override
  public String sql() {
    return text;
  }

  @Override
  public boolean acceptsType(DataType other) {
    return equals(other);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof OpaqueType type && text.equals(type.text);
  }

  @Override
  public int hashCode() {
    return text.hashCode();
  }
}

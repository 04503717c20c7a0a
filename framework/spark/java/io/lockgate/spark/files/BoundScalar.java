package io.lockgate.spark.files;

import java.util.Arrays;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A function of the catalog, bound to the types of its arguments. */
public abstract class BoundScalar<T> implements ScalarFunction<T> {
  protected final DataType[] types;
  private final String name;

  protected BoundScalar(String name, StructType input) {
    this.name = name;
    this.types = Arrays.stream(input.fields()).map(StructField::dataType).toArray(DataType[]::new);
  }

  @Override
  public final DataType[] inputTypes() {
    return types.clone();
  }

  @Override
  public final String name() {
    return name;
  }

  @Override
  public final String canonicalName() {
    return "lockgate." + name;
  }
}

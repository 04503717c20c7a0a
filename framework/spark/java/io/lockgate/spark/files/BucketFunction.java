package io.lockgate.spark.files;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * {@code bucket(count, column, ...)}: the bucket that writers put a row into. A catalog offers it
 * so that Spark brings the rows of one bucket to one task.
 */
public final class BucketFunction implements UnboundFunction {
  public static final String NAME = "bucket";

  @Override
  public BoundFunction bind(StructType input) {
    StructField[] fields = input.fields();
    if (fields.length < 2 || !(fields[0].dataType() instanceof IntegerType)) {
      throw new UnsupportedOperationException(
          "bucket takes a number of buckets and at least one column");
    }
    return new Bound(input);
  }

  @Override
  public String description() {
    return "bucket(count, column, ...): the bucket of a row, from 0 to count - 1, as Apache Paimon"
        + " computes it";
  }

  @Override
  public String name() {
    return NAME;
  }

  private static final class Bound extends BoundScalar<Integer> {
    private transient BucketHash hash;

    Bound(StructType input) {
      super(NAME, input);
    }

    @Override
    public DataType resultType() {
      return DataTypes.IntegerType;
    }

    @Override
    public boolean isResultNullable() {
      return false;
    }

    @Override
    public Integer produceResult(InternalRow input) {
      if (hash == null) {
        int[] ordinals = new int[types.length - 1];
        for (int i = 0; i < ordinals.length; i++) {
          ordinals[i] = i + 1;
        }
        hash = new BucketHash(ordinals, Arrays.copyOfRange(types, 1, types.length));
      }
      return hash.bucket(input, input.getInt(0));
    }
  }
}

package io.lockgate.spark.merge.functions;

import org.apache.spark.unsafe.types.ByteArray;

/** The order of values of one flat type, in Spark's internal form: nulls first, NaN last. */
public final class Order {
  private Order() {}

  @SuppressWarnings("unchecked") // values of one type compare with each other
  public static int compare(Object left, Object right) {
    if (left == null || right == null) {
      return left == right ? 0 : left == null ? -1 : 1;
    }
    if (left instanceof byte[] bytes) {
      return ByteArray.compareBinary(bytes, (byte[]) right);
    }
    return ((Comparable<Object>) left).compareTo(right);
  }
}

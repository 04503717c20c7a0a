package io.lockgate.spark.orc;

import org.apache.spark.util.SerializableConfiguration;

/** The executor's entry to writing. */
public final class OrcWrites {
  private OrcWrites() {}

  public static OrcWriter writer(WriteSpec spec, SerializableConfiguration hadoop, int partition, long task, long epoch) {
    throw new UnsupportedOperationException();
  }
}

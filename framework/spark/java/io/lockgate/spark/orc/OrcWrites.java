package io.lockgate.spark.orc;

import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.spark.util.SerializableConfiguration;

/** The executor's entry to writing. */
public final class OrcWrites {
  private OrcWrites() {}

  /** The writer of one task attempt; partition, task and epoch are not in file names, which are unique by themselves. */
  public static OrcWriter writer(WriteSpec spec, SerializableConfiguration hadoop, int partition, long task, long epoch) {
    try {
      return spec.keyed() ? new KeyWriter(spec, hadoop.value()) : new AppendWriter(spec, hadoop.value());
    } catch (IOException failure) {
      throw new UncheckedIOException("cannot write task " + task + " of partition " + partition, failure);
    }
  }
}

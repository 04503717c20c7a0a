package io.lockgate.spark.write;

import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.spark.util.SerializableConfiguration;

/** The executor's entry to writing. */
public final class TaskWriters {
  private TaskWriters() {}

  /**
   * The writer of one task attempt: the write's id, the partition and the task make the names of
   * its files unique.
   */
  public static TaskWriter writer(
      WriteSpec spec, SerializableConfiguration hadoop, int partition, long task, long epoch) {
    String attempt = spec.writeId() + "-" + partition + "-" + task;
    try {
      return spec.keyed()
          ? new UpsertWriter(spec, hadoop.value(), attempt)
          : new AppendWriter(spec, hadoop.value(), attempt);
    } catch (IOException failure) {
      throw new UncheckedIOException(
          "cannot write task " + task + " of partition " + partition, failure);
    }
  }
}

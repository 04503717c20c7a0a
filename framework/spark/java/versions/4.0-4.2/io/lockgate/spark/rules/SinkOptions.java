package io.lockgate.spark.rules;

import java.util.Map;
import org.apache.spark.sql.execution.streaming.Sink;

/** The options of a stream's sink of files. */
final class SinkOptions {
  private SinkOptions() {}

  /** None: tasks of a stream before Spark 4.3 do not see them, and nothing encrypts. */
  static Map<String, String> of(Sink sink) {
    return Map.of();
  }
}

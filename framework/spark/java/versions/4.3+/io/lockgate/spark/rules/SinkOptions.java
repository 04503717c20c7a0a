package io.lockgate.spark.rules;

import java.lang.reflect.Field;
import java.util.Map;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.streaming.Sink;

/** The options of a stream's sink of files. */
final class SinkOptions {
  private SinkOptions() {}

  /**
   * The options of a stream's sink of ORC files; none of other sinks.
   *
   * <p>Spark keeps them in fields of its own, and nowhere else. A sink without such fields counts
   * as one that does not encrypt, of which users are warned.
   */
  @SuppressWarnings("unchecked") // a ClassCastException is caught
  static Map<String, String> of(Sink sink) {
    try {
      return FileSinks.options(
          (FileFormat) value(sink, "fileFormat"),
          (scala.collection.immutable.Map<String, String>) value(sink, "options"));
    } catch (ReflectiveOperationException | ClassCastException other) {
      return Map.of();
    }
  }

  private static Object value(Sink sink, String name) throws ReflectiveOperationException {
    Field field = sink.getClass().getDeclaredField(name);
    field.setAccessible(true);
    return field.get(sink);
  }
}

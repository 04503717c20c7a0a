package io.lockgate.spark.rules;

import java.lang.reflect.Field;
import java.util.Map;
import org.apache.spark.package$;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat;
import org.apache.spark.sql.execution.streaming.Sink;
import scala.jdk.javaapi.CollectionConverters;

/** The options of written files outside tables that matter here: those of ORC. */
final class FileSinks {
  /** Tasks of a stream in Spark 4.1 do not see its sink's options; 4.2 was not tried. */
  private static final boolean STREAMS_ENCRYPT = minor(package$.MODULE$.SPARK_VERSION()) >= 403;

  private FileSinks() {}

  private static int minor(String version) {
    String[] parts = version.split("[.-]");
    return Integer.parseInt(parts[0]) * 100 + Integer.parseInt(parts[1]);
  }

  /** The options of a format that may encrypt; none of others, which pass over them. */
  static Map<String, String> options(
      FileFormat format, scala.collection.immutable.Map<String, String> options) {
    return format instanceof OrcFileFormat ? CollectionConverters.asJava(options) : Map.of();
  }

  /**
   * The options of a stream's sink of ORC files; none of other sinks.
   *
   * <p>Spark keeps them in fields of its own, and nowhere else. A sink without such fields counts
   * as one that does not encrypt, of which users are warned.
   */
  @SuppressWarnings("unchecked") // a ClassCastException is caught
  static Map<String, String> options(Sink sink) {
    if (!STREAMS_ENCRYPT) {
      return Map.of();
    }
    try {
      return options(
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

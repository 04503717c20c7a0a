package io.lockgate.spark.rules;

import java.util.Map;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat;
import scala.jdk.javaapi.CollectionConverters;

/** The options of written files outside tables that matter here: those of ORC. */
final class FileSinks {
  private FileSinks() {}

  /** The options of a format that may encrypt; none of others, which pass over them. */
  static Map<String, String> options(
      FileFormat format, scala.collection.immutable.Map<String, String> options) {
    return format instanceof OrcFileFormat ? CollectionConverters.asJava(options) : Map.of();
  }
}

package io.lockgate.spark.enforcement.parts;

import com.codahale.metrics.MetricRegistry;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;

/**
 * A part of the connector that runs along with an application. {@code META-INF/services} names the
 * classes, so that nothing else of the connector knows them.
 */
public interface Part {
  /** Answers a question of an executor, whose fields it checks by {@link Fields}. */
  @FunctionalInterface
  interface Answer {
    Object to(Fields fields);
  }

  /** Called on the driver when the application starts. */
  default void startOnDriver(SparkContext context, MetricRegistry metrics) {}

  /**
   * Called when an executor other than the driver starts; what it returns is closed when that ends,
   * unless it is null.
   */
  default AutoCloseable startOnExecutor(PluginContext plugin, DriverLink driver) {
    return null;
  }

  /** The answers to questions of executors, by the names of the questions. */
  default Map<String, Answer> answers() {
    return Map.of();
  }

  /** The function that is offered to a session under a name, null if there is none. */
  default UnboundFunction function(SparkSession session, String name) {
    return null;
  }
}

package io.lockgate.spark.lookup.owner;

import com.codahale.metrics.Gauge;
import com.codahale.metrics.MetricRegistry;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import io.lockgate.spark.bridge.Bridge;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The state of lookups in Spark's metric system: numbers from Python, under the plugin's name. */
public final class Gauges {
  private static final Map<String, Double> VALUES = new ConcurrentHashMap<>();
  private static volatile MetricRegistry registry;

  private Gauges() {}

  /**
   * Shows gauges in the registry of this JVM's plugin; Spark takes it on only if it is not empty by
   * then.
   */
  public static synchronized void showIn(MetricRegistry plugins) {
    registry = plugins;
    plugins.gauge("lookup.gauges", () -> () -> VALUES.size());
    VALUES.keySet().forEach(name -> plugins.gauge(name, () -> gauge(name)));
  }

  /** Sets the gauges {@code prefix.<name>}, whose values come as a JSON object of numbers. */
  public static void publish(String prefix, String values) throws JsonProcessingException {
    publish(prefix, Bridge.JSON.readTree(values));
  }

  static synchronized void publish(String prefix, JsonNode values) {
    values
        .properties()
        .forEach(
            value -> {
              String name = prefix + "." + value.getKey();
              if (VALUES.put(name, value.getValue().asDouble()) == null && registry != null) {
                registry.gauge(name, () -> gauge(name));
              }
            });
  }

  /** Removes the gauges of a lookup that has ended. */
  public static synchronized void withdraw(String prefix) {
    VALUES
        .keySet()
        .removeIf(
            name -> {
              boolean gone = name.startsWith(prefix + ".");
              if (gone && registry != null) {
                registry.remove(name);
              }
              return gone;
            });
  }

  private static Gauge<Double> gauge(String name) {
    return () -> VALUES.getOrDefault(name, Double.NaN);
  }
}

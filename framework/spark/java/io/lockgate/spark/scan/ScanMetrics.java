package io.lockgate.spark.scan;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/**
 * Counts of the planning of a scan, for Spark's UI. Python names the metrics when it describes a
 * table, for the steps of pruning are a list that plugins add to.
 */
final class ScanMetrics {
  private ScanMetrics() {}

  /** The metrics that Python has described, which Spark makes before a scan is planned. */
  static CustomMetric[] of(JsonNode described) {
    List<CustomMetric> out = new ArrayList<>();
    described.forEach(
        each ->
            out.add(
                new ScanMetric(each.get("name").textValue(), each.get("description").textValue())));
    return out.toArray(CustomMetric[]::new);
  }

  /** The values that Python sends with a plan; a step that did not apply has none. */
  static CustomTaskMetric[] values(JsonNode described, JsonNode metrics) {
    List<CustomTaskMetric> out = new ArrayList<>();
    for (CustomMetric metric : of(described)) {
      if (metrics.has(metric.name())) {
        out.add(new Value(metric.name(), metrics.get(metric.name()).longValue()));
      }
    }
    return out.toArray(CustomTaskMetric[]::new);
  }

  private record Value(String name, long value) implements CustomTaskMetric {}
}

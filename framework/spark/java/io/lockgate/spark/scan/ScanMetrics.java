package io.lockgate.spark.scan;

import io.lockgate.spark.messages.FigureName;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/**
 * Counts of the planning of a scan, for Spark's UI. Python names the metrics when it describes a
 * table, for the steps of pruning are a list that plugins add to.
 */
final class ScanMetrics {
  private ScanMetrics() {}

  /** The metrics that Python has described, which Spark makes before a scan is planned. */
  static CustomMetric[] of(List<FigureName> described) {
    return described.stream()
        .map(each -> new ScanMetric(each.name(), each.description()))
        .toArray(CustomMetric[]::new);
  }

  /** The values that Python sends with a plan; a step that did not apply has none. */
  static CustomTaskMetric[] values(List<FigureName> described, Map<String, Long> metrics) {
    List<CustomTaskMetric> out = new ArrayList<>();
    for (CustomMetric metric : of(described)) {
      Long value = metrics.get(metric.name());
      if (value != null) {
        out.add(new Value(metric.name(), value));
      }
    }
    return out.toArray(CustomTaskMetric[]::new);
  }

  private record Value(String name, long value) implements CustomTaskMetric {}
}

package io.lockgate.spark.rules.joins;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.CollectMetrics;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Numbers the metrics of lookups: two of one query on one table need two names.
 *
 * <p>The first lookup of a plan keeps its name, those after it, left to right and from the sources
 * up, get the numbers from 2 on. So a query has the same names whenever it starts.
 */
public final class LookupMetrics extends Rule<LogicalPlan> {
  /** The rule; it changes no plan whose names differ. */
  public static final Rule<LogicalPlan> RULE = new LookupMetrics();

  private static final String PREFIX = "lookup ";

  private LookupMetrics() {}

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.isStreaming() ? numbered(plan, new HashMap<>()) : plan;
  }

  /**
   * {@code taken} has the DataFrame that observes each name: one that comes twice keeps its name.
   */
  private static LogicalPlan numbered(LogicalPlan plan, Map<String, Long> taken) {
    List<LogicalPlan> children = CollectionConverters.asJava(plan.children());
    List<LogicalPlan> made = new ArrayList<>();
    children.forEach(child -> made.add(numbered(child, taken)));
    LogicalPlan found = plan;
    for (int i = 0; i < made.size(); i++) {
      if (made.get(i) != children.get(i)) {
        found = plan.withNewChildren(CollectionConverters.asScala(made).toIndexedSeq());
        break;
      }
    }
    return found instanceof CollectMetrics metrics && metrics.name().startsWith(PREFIX)
        ? named(metrics, taken)
        : found;
  }

  private static LogicalPlan named(CollectMetrics metrics, Map<String, Long> taken) {
    long frame = metrics.dataframeId();
    String name = metrics.name();
    String base = name.replaceFirst(" \\d+$", "");
    for (int number = 2; taken.getOrDefault(name, frame) != frame; number++) {
      name = base + " " + number;
    }
    taken.put(name, frame);
    return name.equals(metrics.name())
        ? metrics
        : metrics.copy(name, metrics.metrics(), metrics.child(), frame);
  }
}

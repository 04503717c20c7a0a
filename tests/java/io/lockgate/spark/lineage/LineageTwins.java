package io.lockgate.spark.lineage;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.metrics.source.Source;

/** The numbers of kinds of edges, by the names that Python gives them. */
public final class LineageTwins {
  private LineageTwins() {}

  /** Every kind with its number, as JSON. */
  public static String kinds() {
    ObjectNode out = Bridge.object();
    put(out, "IDENTITY", Dependencies.IDENTITY);
    put(out, "TRANSFORMATION", Dependencies.TRANSFORMATION);
    put(out, "AGGREGATION", Dependencies.AGGREGATION);
    return out.put("CONDITIONAL", Dependencies.CONDITIONAL)
        .put("WINDOW", Dependencies.WINDOW)
        .put("FILTER", Dependencies.FILTER)
        .put("JOIN", Dependencies.JOIN)
        .put("GROUP_BY", Dependencies.GROUP_BY)
        .put("SORT", Dependencies.SORT)
        .put("OPAQUE", Dependencies.OPAQUE)
        .toString();
  }

  /** A listener of an application whose own thread is busy for good; its queue holds so many. */
  public static LineageListener busy(SparkContext context, int capacity) {
    LineageListener listener = new LineageListener(context, capacity);
    context.addSparkListener(listener);
    return listener;
  }

  /** Its counters. */
  public static String counters(LineageListener listener) {
    return listener.counters().toString();
  }

  /** The counters of lineage that a monitor of Spark reads, by their names. */
  public static String metrics() {
    ObjectNode out = Bridge.object();
    Source source =
        SparkEnv.get()
            .metricsSystem()
            .getSourcesByName("plugin.io.lockgate.spark.LockgatePlugin")
            .head();
    source
        .metricRegistry()
        .getGauges((name, metric) -> name.startsWith("lineage."))
        .forEach((name, gauge) -> out.put(name.substring(8), (Long) gauge.getValue()));
    return out.toString();
  }

  /** A column of a path, as records name it. */
  public static String columnText(String path) throws JsonProcessingException {
    return Sources.text(Bridge.JSON.readTree(path));
  }

  private static void put(ObjectNode out, String name, int kind) {
    out.put(name, kind).put("MASKED_" + name, Dependencies.masked(kind));
  }
}

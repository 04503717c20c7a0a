package io.lockgate.spark.lookup.owner;

import com.codahale.metrics.MetricRegistry;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Shapes;
import io.lockgate.spark.enforcement.parts.DriverLink;
import io.lockgate.spark.enforcement.parts.Fields;
import io.lockgate.spark.enforcement.parts.Part;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.PluginContext;

/** Processes of executors that keep the caches of lookups, and their messages. */
public final class CacheServerPart implements Part {
  private static final Pattern EXECUTOR = Pattern.compile("[0-9A-Za-z_.-]{1,128}");

  @Override
  public void startOnDriver(SparkContext context, MetricRegistry metrics) {
    Gauges.showIn(metrics);
    Executors.watch(context);
  }

  @Override
  public AutoCloseable startOnExecutor(PluginContext plugin, DriverLink driver) {
    Gauges.showIn(plugin.metricRegistry());
    CacheServerProcesses owners = new CacheServerProcesses(plugin.executorID(), driver);
    return owners::close;
  }

  @Override
  public Map<String, Answer> answers() {
    return Map.of(
        "lookup.poll",
        fields -> Executors.poll(fields.text("executor", EXECUTOR)),
        "lookup.event",
        CacheServerPart::pass);
  }

  private static JsonNode pass(Fields fields) {
    String executor = fields.text("executor", EXECUTOR);
    ObjectNode request =
        Bridge.object().put("executor", executor).put("name", fields.text("name", Fields.NAME));
    request.set("event", fields.json().get("event"));
    String fault = Shapes.faultInRequest("lookup.event", request);
    if (fault != null) {
      throw new IllegalArgumentException(
          "a process of an executor sent an invalid message: " + fault);
    }
    Executors.noteEvent(executor);
    return Bridge.ask("lookup.event", request);
  }
}

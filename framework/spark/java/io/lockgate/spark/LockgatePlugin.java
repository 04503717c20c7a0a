package io.lockgate.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.DriverLink;
import io.lockgate.spark.keys.CipherWarmUp;
import io.lockgate.spark.keys.KeyService;
import io.lockgate.spark.lineage.LineageListener;
import io.lockgate.spark.owner.Executors;
import io.lockgate.spark.owner.Gauges;
import io.lockgate.spark.owner.OwnerProcesses;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/**
 * Lets executors ask the driver for local keys over Spark's own RPC, and has them keep the caches
 * of lookups; configured by {@code spark.plugins}.
 *
 * <p>Questions and answers are bytes of JSON: the RPC's threads do not see the classes of {@code
 * spark.jars}, and Spark may print a message, which must not show a key.
 */
public final class LockgatePlugin implements SparkPlugin {
  @Override
  public DriverPlugin driverPlugin() {
    return new DriverPlugin() {
      @Override
      public Map<String, String> init(SparkContext context, PluginContext plugin) {
        Gauges.showIn(plugin.metricRegistry());
        Executors.watch(context);
        LineageListener.watch(context, plugin.metricRegistry());
        return Map.of();
      }

      @Override
      public Object receive(Object message) {
        return bytes(ExecutorQuestions.answer((byte[]) message));
      }
    };
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return new ExecutorPlugin() {
      private OwnerProcesses owners;

      @Override
      public void init(PluginContext plugin, Map<String, String> extra) {
        // In local mode the executor lives in the driver, where the bridge is.
        if (!plugin.executorID().equals("driver")) {
          KeyService.reachDriverBy((question, fields) -> ask(plugin, question, fields));
          CipherWarmUp.start();
          Gauges.showIn(plugin.metricRegistry());
          owners =
              new OwnerProcesses(
                  plugin.executorID(), (question, fields) -> ask(plugin, question, fields));
        }
      }

      @Override
      public void shutdown() {
        if (owners != null) {
          owners.close();
        }
      }
    };
  }

  private static JsonNode ask(PluginContext plugin, String question, ObjectNode fields)
      throws Exception {
    ObjectNode message = Bridge.object().put("question", question);
    message.set("fields", fields);
    JsonNode answer = Bridge.JSON.readTree((byte[]) plugin.ask(bytes(message)));
    JsonNode error = answer.get("error");
    if (error != null) {
      throw new DriverLink.RefusedException(
          error.get("type").asText(), error.get("message").asText());
    }
    return answer.get("ok");
  }

  private static byte[] bytes(ObjectNode json) {
    return json.toString().getBytes(StandardCharsets.UTF_8);
  }
}

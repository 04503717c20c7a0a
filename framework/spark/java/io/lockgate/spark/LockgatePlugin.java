package io.lockgate.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.lookup.Executors;
import io.lockgate.spark.lookup.Gauges;
import io.lockgate.spark.lookup.OwnerProcesses;
import io.lockgate.spark.orc.CipherWarmUp;
import io.lockgate.spark.orc.KeyService;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/**
 * Lets executors ask the driver for local keys over Spark's own RPC, and has them keep the caches of lookups; configured by
 * {@code spark.plugins}.
 *
 * <p>Questions and answers are bytes of JSON: the RPC's threads do not see the classes of {@code spark.jars}, and Spark may
 * print a message, which must not show a key.
 */
public final class LockgatePlugin implements SparkPlugin {
  @Override
  public DriverPlugin driverPlugin() {
    return new DriverPlugin() {
      @Override
      public Map<String, String> init(SparkContext context, PluginContext plugin) {
        Gauges.showIn(plugin.metricRegistry());
        Executors.watch(context);
        return Map.of();
      }

      @Override
      public Object receive(Object message) {
        ObjectNode answer = Bridge.object();
        try {
          JsonNode question = Bridge.JSON.readTree((byte[]) message);
          answer.put("reply", reply(question.get("operation").asText(), question.get("request").asText()));
        } catch (Exception failure) {
          answer.put("error", failure.getMessage());
        }
        return bytes(answer);
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
          KeyService.reachDriverBy((operation, request) -> ask(plugin, operation, request));
          CipherWarmUp.start();
          Gauges.showIn(plugin.metricRegistry());
          owners = new OwnerProcesses(plugin.executorID(), (operation, request) -> ask(plugin, operation, request));
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

  private static String reply(String operation, String request) throws Exception {
    if (!operation.startsWith("lookup.")) {
      return KeyService.answer(operation, request);
    }
    ObjectNode reply = Bridge.object();
    try {
      reply.set("ok", Executors.answer(operation, Bridge.JSON.readTree(request)));
    } catch (Exception failure) {
      reply.put("error", String.valueOf(failure.getMessage()));
    }
    return reply.toString();
  }

  private static String ask(PluginContext plugin, String operation, String request) throws Exception {
    byte[] question = bytes(Bridge.object().put("operation", operation).put("request", request));
    JsonNode answer = Bridge.JSON.readTree((byte[]) plugin.ask(question));
    if (answer.has("error")) {
      throw new IOException(answer.get("error").asText());
    }
    return answer.get("reply").asText();
  }

  private static byte[] bytes(ObjectNode json) {
    return json.toString().getBytes(StandardCharsets.UTF_8);
  }
}

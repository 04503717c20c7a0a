package io.lockgate.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
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
 * Lets executors ask the driver for local keys over Spark's own RPC; configured by {@code spark.plugins}.
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
        return Map.of();
      }

      @Override
      public Object receive(Object message) {
        ObjectNode answer = Bridge.object();
        try {
          JsonNode question = Bridge.JSON.readTree((byte[]) message);
          answer.put("reply", KeyService.answer(question.get("operation").asText(), question.get("request").asText()));
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
      @Override
      public void init(PluginContext plugin, Map<String, String> extra) {
        // In local mode the executor lives in the driver, where the bridge is.
        if (!plugin.executorID().equals("driver")) {
          KeyService.reachDriverBy((operation, request) -> ask(plugin, operation, request));
          CipherWarmUp.start();
        }
      }
    };
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

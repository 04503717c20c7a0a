package io.lockgate.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.ConnectorVersion;
import io.lockgate.spark.enforcement.parts.DriverLink;
import io.lockgate.spark.enforcement.parts.ExecutorQuestions;
import io.lockgate.spark.enforcement.parts.Part;
import io.lockgate.spark.enforcement.parts.PartRegistry;
import io.lockgate.spark.messages.ErrorJson;
import io.lockgate.spark.messages.Messages;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/**
 * Starts the {@link Part}s of the connector with an application, and lets executors ask the driver
 * over Spark's own RPC; configured by {@code spark.plugins}.
 *
 * <p>Questions and answers are bytes of JSON: the RPC's threads do not see the classes of {@code
 * spark.jars}, and Spark may print a message, which must not show a key.
 */
public final class LockgatePlugin implements SparkPlugin {
  @Override
  public DriverPlugin driverPlugin() {
    ConnectorVersion.check();
    return new DriverPlugin() {
      @Override
      public Map<String, String> init(SparkContext context, PluginContext plugin) {
        context.addSparkListener(new RefusedExecutors(context));
        PartRegistry.all().forEach(part -> part.startOnDriver(context, plugin.metricRegistry()));
        return ConnectorVersion.told();
      }

      @Override
      public Object receive(Object message) {
        return bytes(ExecutorQuestions.answer((byte[]) message));
      }
    };
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    ConnectorVersion.check();
    return new ExecutorPlugin() {
      private final List<AutoCloseable> started = new ArrayList<>();

      @Override
      public void init(PluginContext plugin, Map<String, String> extra) {
        // In local mode the executor lives in the driver, where the bridge is.
        if (!plugin.executorID().equals("driver")) {
          ConnectorVersion.checkWith(extra);
          DriverLink driver = (question, fields) -> ask(plugin, question, fields);
          for (Part part : PartRegistry.all()) {
            AutoCloseable closed = part.startOnExecutor(plugin, driver);
            if (closed != null) {
              started.add(closed);
            }
          }
        }
      }

      @Override
      public void shutdown() {
        started.forEach(LockgatePlugin::close);
      }
    };
  }

  private static void close(AutoCloseable started) {
    try {
      started.close();
    } catch (Exception failure) {
      throw new IllegalStateException("a part of an executor did not end", failure);
    }
  }

  private static JsonNode ask(PluginContext plugin, String question, JsonNode fields)
      throws Exception {
    ObjectNode message = Bridge.object().put("question", question);
    message.set("fields", fields);
    JsonNode answer = Bridge.JSON.readTree((byte[]) plugin.ask(bytes(message)));
    JsonNode error = answer.get("error");
    if (error != null) {
      ErrorJson refused = Messages.read(error, ErrorJson.class);
      throw new DriverLink.RefusedException(refused.type(), refused.message());
    }
    return answer.get("ok");
  }

  private static byte[] bytes(ObjectNode json) {
    return json.toString().getBytes(StandardCharsets.UTF_8);
  }
}

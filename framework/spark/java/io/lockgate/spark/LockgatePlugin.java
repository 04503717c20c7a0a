package io.lockgate.spark;

import io.lockgate.spark.orc.KeyService;
import java.io.Serializable;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/** Lets executors ask the driver for local keys over Spark's own RPC; configured by {@code spark.plugins}. */
public final class LockgatePlugin implements SparkPlugin {
  /** A question of an executor: an operation of the bridge and its JSON. */
  public record Question(String operation, String request) implements Serializable {
    @Override
    public String toString() {
      return "question " + operation;
    }
  }

  /** The reply's JSON; its text form tells nothing, for it may hold a key. */
  public record Answer(String reply) implements Serializable {
    @Override
    public String toString() {
      return "answer";
    }
  }

  @Override
  public DriverPlugin driverPlugin() {
    return new DriverPlugin() {
      @Override
      public Map<String, String> init(SparkContext context, PluginContext plugin) {
        return Map.of();
      }

      @Override
      public Object receive(Object message) throws Exception {
        Question question = (Question) message;
        return new Answer(KeyService.answer(question.operation(), question.request()));
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
          KeyService.reachDriverBy((operation, request) ->
              ((Answer) plugin.ask(new Question(operation, request))).reply());
        }
      }
    };
  }
}

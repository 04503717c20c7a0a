package io.lockgate.benchmarks;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.function.BinaryOperator;

/** Times questions to Python for the benchmark {@code leaks}, from a thread of the JVM's own as most questions come from. */
public final class CallTimer {
  private CallTimer() {}

  /** Asks so many questions over the bridge. */
  public static void bridge(String operation, int calls) throws InterruptedException, ExecutionException {
    repeat(calls, () -> Bridge.ask(operation, request(operation)).asText());
  }

  /** Makes so many callbacks of py4j with the same JSON. */
  public static void callback(BinaryOperator<String> python, int calls) throws InterruptedException, ExecutionException {
    repeat(calls, () -> {
      JsonNode reply = Bridge.JSON.readTree(python.apply("bench", request("bench").toString()));
      return reply.get("ok").asText();
    });
  }

  private static ObjectNode request(String operation) {
    ObjectNode request = Bridge.object().put("operation", operation);
    request.putArray("columns").add("id").add("name").add("value");
    return request;
  }

  private static void repeat(int calls, Callable<String> call) throws InterruptedException, ExecutionException {
    FutureTask<Void> work = new FutureTask<>(() -> {
      for (int i = 0; i < calls; i++) {
        call.call();
      }
      return null;
    });
    Thread thread = new Thread(work);
    thread.start();
    work.get();
  }
}

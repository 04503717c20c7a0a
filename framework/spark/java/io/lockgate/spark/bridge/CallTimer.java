package io.lockgate.spark.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.Bridge;
import java.util.Arrays;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.function.BinaryOperator;

/** Times questions to Python for the benchmark {@code leaks}, from a thread of the JVM's own as most questions come from. */
public final class CallTimer {
  private CallTimer() {}

  /** The median of so many questions over the bridge, in nanoseconds. */
  public static long bridge(String operation, int calls) throws InterruptedException, ExecutionException {
    return median(calls, () -> Bridge.ask(operation, request(operation)).asText());
  }

  /** The median of so many callbacks of py4j with the same JSON. */
  public static long callback(BinaryOperator<String> python, int calls) throws InterruptedException, ExecutionException {
    return median(calls, () -> {
      JsonNode reply = Bridge.JSON.readTree(python.apply("bench", request("bench").toString()));
      return reply.get("ok").asText();
    });
  }

  private static ObjectNode request(String operation) {
    ObjectNode request = Bridge.object().put("operation", operation);
    request.putArray("columns").add("id").add("name").add("value");
    return request;
  }

  private static long median(int calls, Callable<String> call) throws InterruptedException, ExecutionException {
    CompletableFuture<Long> result = new CompletableFuture<>();
    Thread thread = new Thread(() -> {
      try {
        long[] nanos = new long[calls];
        for (int i = 0; i < calls; i++) {
          long started = System.nanoTime();
          call.call();
          nanos[i] = System.nanoTime() - started;
        }
        Arrays.sort(nanos);
        result.complete(nanos[calls / 2]);
      } catch (Exception e) {
        result.completeExceptionally(e);
      }
    });
    thread.start();
    return result.get();
  }
}

package io.lockgate.spark.owner;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;

/**
 * The executors that the driver knows, and Python's commands for them.
 *
 * <p>A plugin cannot call an executor, so each asks now and then. That is answered here: Python is
 * troubled only by what the processes of executors say.
 */
public final class Executors {
  private static final long IDLE_MILLIS = 500;
  private static final long BUSY_MILLIS = 40;

  /**
   * Time for which an executor counts as busy after a command or a message, as owners have them.
   */
  private static final long BUSY_NANOS = TimeUnit.SECONDS.toNanos(30);

  /**
   * Limit that keeps many executors from burdening the driver: 250 questions a second of all
   * together.
   */
  private static final long MILLIS_AN_EXECUTOR = 4;

  private static final Map<String, Box> BOXES = new ConcurrentHashMap<>();
  private static final Set<String> REMOVED = ConcurrentHashMap.newKeySet();
  private static volatile boolean lookupsRun;

  private Executors() {}

  private static final class Box {
    private final Queue<String> commands = new ConcurrentLinkedQueue<>();
    private volatile long lastPoll = System.nanoTime();
    private volatile long busy = lastPoll;

    private long pause() {
      boolean often = lookupsRun && System.nanoTime() - busy < BUSY_NANOS;
      return often ? Math.max(BUSY_MILLIS, MILLIS_AN_EXECUTOR * BOXES.size()) : IDLE_MILLIS;
    }
  }

  /** Called when an application starts. */
  public static void watch(SparkContext context) {
    BOXES.clear();
    REMOVED.clear();
    context.addSparkListener(
        new SparkListener() {
          @Override
          public void onExecutorRemoved(SparkListenerExecutorRemoved event) {
            REMOVED.add(event.executorId());
            BOXES.remove(event.executorId());
          }
        });
  }

  /** Notes that a process of an executor has sent a message. */
  public static void noteEvent(String executor) {
    Box speaker = BOXES.get(executor);
    if (speaker != null) {
      speaker.busy = System.nanoTime();
    }
  }

  /** Returns an executor's commands, and the milliseconds until its next request. */
  public static JsonNode poll(String executor) {
    ObjectNode reply = Bridge.object().put("pause", IDLE_MILLIS);
    ArrayNode commands = reply.putArray("commands");
    if (!REMOVED.contains(executor)) {
      Box box = BOXES.computeIfAbsent(executor, id -> new Box());
      box.lastPoll = System.nanoTime();
      for (String command = box.commands.poll(); command != null; command = box.commands.poll()) {
        commands.add(command(command));
        box.busy = System.nanoTime();
      }
      reply.put("pause", box.pause());
    }
    return reply;
  }

  private static JsonNode command(String posted) {
    try {
      return Bridge.JSON.readTree(posted);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(e); // it is Python's own
    }
  }

  /** Leaves a command for an executor; false if there is no such executor any more. */
  public static boolean post(String executor, String command) {
    Box box = BOXES.get(executor);
    return box != null && box.commands.add(command);
  }

  /** The executors, and the milliseconds since each asked last, as a JSON object. */
  public static String census() {
    ObjectNode found = Bridge.object();
    BOXES.forEach(
        (executor, box) -> found.put(executor, (System.nanoTime() - box.lastPoll) / 1_000_000));
    return found.toString();
  }

  /** Has executors ask more often while lookups run: those at least that keep a cache. */
  public static void hurry(boolean running) {
    lookupsRun = running;
  }
}

package io.lockgate.spark.lookup.owner;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.messages.Command;
import io.lockgate.spark.messages.Operations;
import io.lockgate.spark.messages.PollRequest;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;

/**
 * The executors that the driver knows, and whether Python has commands for them.
 *
 * <p>A plugin cannot call an executor, so each asks now and then. That is answered here: Python is
 * troubled only if it has called an executor, and by what the processes of executors say.
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
    private final AtomicBoolean called = new AtomicBoolean();
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

  /** An executor's commands, and the milliseconds until its next request. */
  public record Orders(List<Command> commands, long pause) {}

  /** Returns the orders of an executor. */
  static Orders poll(PollRequest request) {
    String executor = request.executor();
    if (REMOVED.contains(executor)) {
      return new Orders(List.of(), IDLE_MILLIS);
    }
    Box box = BOXES.computeIfAbsent(executor, id -> new Box());
    box.lastPoll = System.nanoTime();
    List<Command> commands = commands(request, box);
    return new Orders(commands, box.pause());
  }

  private static List<Command> commands(PollRequest request, Box box) {
    if (!box.called.getAndSet(false)) {
      return List.of();
    }
    boolean answered = false;
    try {
      List<Command> commands = Bridge.ask(Operations.LOOKUP_POLL, request).commands();
      box.busy = System.nanoTime();
      answered = true;
      return commands;
    } finally {
      if (!answered) {
        box.called.set(true); // the commands still wait
      }
    }
  }

  /**
   * Notes that Python has commands for an executor; false if there is no such executor any more.
   */
  public static boolean call(String executor) {
    Box box = BOXES.get(executor);
    if (box == null) {
      return false;
    }
    box.called.set(true);
    return true;
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

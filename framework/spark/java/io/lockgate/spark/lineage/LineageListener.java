package io.lockgate.spark.lineage;

import com.codahale.metrics.MetricRegistry;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Failure;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingDeque;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingDeque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Receives each ended execution of SQL, and analyses its plan on a thread of its own.
 *
 * <p>The thread of a query does nothing for it, and Spark's listener bus only puts an entry into a
 * queue, which drops what it cannot hold. Nothing that goes wrong here reaches a query.
 */
public final class LineageListener extends SparkListener {
  private static final String MODE = "spark.lockgate.lineage";
  private static final int CAPACITY = 1_000;
  private static final long TELL_MILLIS = 1_000;

  /** Records in one message: each message takes Python's time from the queries of its program. */
  private static final int MOST_AT_A_TIME = 100;

  /** The wait of an application that ends for its last records. */
  private static final long LAST_MILLIS = 5_000;

  private static volatile LineageListener current;

  /** An execution that has begun. */
  private record Begun(long root, long time, String description, Map<String, String> confs) {}

  /** Comes along the listener bus behind all that has ended: a busy session has no empty bus. */
  private record Passed(CountDownLatch latch) implements SparkListenerEvent {
    @Override
    public boolean logEvent() {
      return false;
    }
  }

  /** A record, and the session that it is of. */
  private record Unsent(SparkSession session, ObjectNode line) {}

  private final BlockingDeque<Unsent> unsent = new LinkedBlockingDeque<>(CAPACITY);
  private final BlockingQueue<Object> queue;
  private final Map<Long, Begun> begun = new ConcurrentHashMap<>();
  private final Executions executions = new Executions(this::tell);
  private final AtomicLong seen = new AtomicLong();
  private final AtomicLong dropped = new AtomicLong();
  private final AtomicLong failed = new AtomicLong();
  private final AtomicLong cut = new AtomicLong();
  private final AtomicLong opaque = new AtomicLong();
  private final AtomicLong recorded = new AtomicLong();
  private final AtomicLong busNanos = new AtomicLong();
  private final AtomicLong ownNanos = new AtomicLong();
  private final SparkContext context;
  private volatile String problem = "";
  private volatile boolean isEnded;
  private long lastSent = System.nanoTime();

  /** A listener whose queue holds so many executions; nobody takes them out of it yet. */
  LineageListener(SparkContext context, int capacity) {
    this.context = context;
    this.queue = new ArrayBlockingQueue<>(capacity);
  }

  /** Listens to an application from its start, and shows its counters among Spark's metrics. */
  public static void watch(SparkContext context, MetricRegistry metrics) {
    LineageListener listener = new LineageListener(context, CAPACITY);
    current = listener;
    Thread thread = new Thread(listener::work, "lockgate-lineage");
    thread.setDaemon(true);
    thread.start();
    listener.show(metrics);
    context.addSparkListener(listener);
  }

  /** The session's setting of recording: off, writes or all. */
  static String mode(Map<String, String> confs) {
    return confs.getOrDefault(MODE, "writes");
  }

  /** Tells whether a session turned off recording, and checks by recorded lineage. */
  public static boolean isOff(SparkSession session) {
    return session.conf().get(MODE, "writes").equals("off");
  }

  /** Waits until all that has ended by now was looked at; false if that takes too long. */
  public static boolean drain(long millis) throws Exception {
    LineageListener listener = current;
    if (listener == null || listener.context.isStopped()) {
      return true;
    }
    Passed passed = new Passed(new CountDownLatch(1));
    listener.context.listenerBus().post(passed);
    CountDownLatch done = new CountDownLatch(1);
    return passed.latch.await(millis, TimeUnit.MILLISECONDS)
        && listener.queue.offer(done, millis, TimeUnit.MILLISECONDS)
        && done.await(millis, TimeUnit.MILLISECONDS);
  }

  /** The counters, and what went wrong last, as JSON. */
  public static String status() {
    LineageListener listener = current;
    return listener == null ? "{}" : listener.counters().toString();
  }

  ObjectNode counters() {
    return Bridge.object()
        .put("seen", seen.get())
        .put("recorded", recorded.get())
        .put("dropped", dropped.get())
        .put("failed", failed.get())
        .put("cut", cut.get())
        .put("opaque", opaque.get())
        .put("waiting", queue.size() + unsent.size())
        .put("bus_micros", busNanos.get() / 1000)
        .put("own_micros", ownNanos.get() / 1000)
        .put("last_problem", problem);
  }

  private void show(MetricRegistry metrics) {
    metrics.gauge("lineage.seen", () -> seen::get);
    metrics.gauge("lineage.recorded", () -> recorded::get);
    metrics.gauge("lineage.dropped", () -> dropped::get);
    metrics.gauge("lineage.failed", () -> failed::get);
    metrics.gauge("lineage.cut", () -> cut::get);
    metrics.gauge("lineage.opaque", () -> opaque::get);
  }

  @Override
  public void onOtherEvent(SparkListenerEvent event) {
    long start = System.nanoTime();
    try {
      if (event instanceof SparkListenerSQLExecutionStart begins) {
        begin(begins);
      } else if (event instanceof SparkListenerSQLExecutionEnd ends) {
        end(ends);
      } else if (event instanceof Passed passed) {
        passed.latch.countDown();
      }
    } catch (RuntimeException unexpected) {
      failed.incrementAndGet();
      problem = unexpected.toString();
    }
    busNanos.addAndGet(System.nanoTime() - start);
  }

  private void begin(SparkListenerSQLExecutionStart event) {
    long root =
        event.rootExecutionId().isDefined()
            ? (Long) event.rootExecutionId().get()
            : event.executionId();
    Map<String, String> confs = CollectionConverters.asJava(event.modifiedConfigs());
    begun.put(event.executionId(), new Begun(root, event.time(), event.description(), confs));
  }

  private void end(SparkListenerSQLExecutionEnd event) {
    Begun start = begun.remove(event.executionId());
    if (event.qe() == null || start == null || mode(start.confs).equals("off")) {
      return;
    }
    seen.incrementAndGet();
    Object error = event.executionFailure().isDefined() ? event.executionFailure().get() : null;
    Execution execution =
        new Execution(
            event.executionId(),
            start.root,
            event.executionName().isDefined() ? event.executionName().get() : null,
            event.qe(),
            start.time,
            event.time(),
            start.description,
            start.confs,
            // Its message may hold values of rows.
            error == null ? null : error.getClass().getSimpleName());
    if (!queue.offer(execution)) {
      dropped.incrementAndGet();
    }
  }

  /** Sends the last records, while Python still answers. */
  @Override
  public void onApplicationEnd(SparkListenerApplicationEnd event) {
    CountDownLatch done = new CountDownLatch(1);
    try {
      if (queue.offer(done, LAST_MILLIS, TimeUnit.MILLISECONDS)) {
        done.await(LAST_MILLIS, TimeUnit.MILLISECONDS);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    isEnded = true;
  }

  private void work() {
    while (!isEnded) {
      try {
        handle(queue.poll(TELL_MILLIS, TimeUnit.MILLISECONDS));
      } catch (InterruptedException e) {
        return;
      } catch (Throwable unexpected) {
        failed.incrementAndGet();
        problem = unexpected.toString();
      }
    }
  }

  private void handle(Object work) {
    long start = System.nanoTime();
    try {
      if (work instanceof Execution execution) {
        executions.ended(execution);
      }
      boolean isTime = start - lastSent > TimeUnit.MILLISECONDS.toNanos(TELL_MILLIS);
      if (!(work instanceof Execution) || isTime || unsent.size() >= MOST_AT_A_TIME) {
        lastSent = start;
        executions.flush();
        send();
      }
    } finally {
      if (work instanceof CountDownLatch waits) {
        waits.countDown();
      }
      ownNanos.addAndGet(System.nanoTime() - start);
    }
  }

  private void tell(SparkSession session, ObjectNode line) {
    if (!Bridge.isAttached()) {
      dropped.incrementAndGet();
      return;
    }
    if (line.get("cut").asBoolean()) {
      cut.incrementAndGet();
    }
    if (!line.get("opaque").isEmpty()) {
      opaque.incrementAndGet();
    }
    if (!unsent.offerLast(new Unsent(session, line))) {
      dropped.incrementAndGet();
    }
  }

  /** Sends Python the pending records, the oldest first; while Python is away, they wait here. */
  private void send() {
    while (!unsent.isEmpty()) {
      List<Unsent> some = next();
      try {
        send(some);
      } catch (Exception failure) {
        if (Failure.isUnanswered(failure)) {
          for (int i = some.size() - 1; i >= 0; i--) {
            unsent.addFirst(some.get(i));
          }
          return;
        }
        failed.addAndGet(some.size());
        problem = failure.toString();
      }
    }
  }

  /** The next records of one session. */
  private List<Unsent> next() {
    List<Unsent> some = new ArrayList<>();
    while (some.size() < MOST_AT_A_TIME
        && !unsent.isEmpty()
        && (some.isEmpty() || unsent.peekFirst().session == some.get(0).session)) {
      some.add(unsent.pollFirst());
    }
    return some;
  }

  private void send(List<Unsent> some) {
    ObjectNode ask =
        Bridge.object().put("application", context.applicationId()).put("spark", context.version());
    ArrayNode statements = ask.putArray("statements");
    some.forEach(each -> statements.add(each.line));
    SparkSession.setActiveSession(some.get(0).session);
    try {
      JsonNode problems = Bridge.ask("lineage.record", ask);
      recorded.addAndGet(some.size() - problems.size());
      failed.addAndGet(problems.size());
      problems.forEach(each -> problem = each.asText());
    } finally {
      SparkSession.clearActiveSession();
    }
  }
}

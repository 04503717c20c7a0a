package io.lockgate.spark.bridge;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.api.python.Py4JServer;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The driver's Python as a child of this JVM, where no Python program has attached: spark-sql, the
 * Thrift server, Spark Connect, an application in Scala, a PySpark program that knows Lockgate by
 * its confs alone. A program that attaches later takes over.
 *
 * <p>The child comes to the session as any Python driver does, by Spark's own gateway; port and
 * secret are in its environment. Its standard input is the lease: the system closes it when this
 * JVM ends, however that ends, and the child ends too. The first question starts it, and the next
 * one after its death starts another.
 */
final class PythonChild {
  private static final String START = "spark.lockgate.python.start";
  private static final String PYTHON = "spark.lockgate.python";
  private static final String SECONDS = "spark.lockgate.python.timeout";
  private static final String NOT_ATTACHED =
      "Lockgate is not attached to this Spark session: call lockgate.attach(spark) first";
  private static final Pattern PYTHON_NAME = Pattern.compile("(.*/)?python[0-9.]*");
  private static final int KEPT_LINES = 20;
  private static final Logger LOG = LoggerFactory.getLogger("io.lockgate.spark.python");

  private static PythonChild newest;

  private final String python;
  private final Py4JServer gateway;
  private final Process process;
  private final CompletableFuture<String> ready = new CompletableFuture<>();
  private final Deque<String> lastLines = new ArrayDeque<>();

  /** Tells whether Python answered as a child of this JVM and has ended. */
  static synchronized boolean isGone() {
    return newest != null && !newest.process.isAlive();
  }

  /** The Python that answers from now on, or null for the one that has already registered. */
  static void await() {
    SparkContext context = context();
    PythonChild child = running(context);
    try {
      child.awaitReady(context.getConf().getTimeAsSeconds(SECONDS, "120s"));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new UncheckedIOException(
          "interrupted while Lockgate's Python started", new ClosedByInterruptException());
    } catch (RuntimeException e) {
      if (!child.isReplaced()) {
        throw e;
      }
    }
  }

  /** Ends the child, since a Python program has attached; it ends by itself when its input does. */
  static synchronized void end() {
    if (newest != null) {
      try {
        newest.process.getOutputStream().close();
      } catch (IOException e) {
        LOG.debug("the child's input cannot be closed", e);
        newest.process.destroy();
      }
      newest = null;
    }
  }

  private boolean isReplaced() {
    synchronized (PythonChild.class) {
      return newest != this;
    }
  }

  private static SparkContext context() {
    Option<SparkSession> session = SparkSession.getActiveSession();
    Option<SparkSession> asks = session.isDefined() ? session : SparkSession.getDefaultSession();
    if (asks.isEmpty() || asks.get().sparkContext().isStopped()) {
      throw Bridge.failure(NOT_ATTACHED);
    }
    SparkContext active = asks.get().sparkContext();
    String start = active.getConf().get(START, "auto");
    if (start.equals("never")) {
      throw Bridge.failure(
          NOT_ATTACHED + "; or start Spark without " + START + "=never, and it starts Python");
    }
    if (!start.equals("auto")) {
      throw Bridge.failure(START + " is '" + start + "': give auto or never");
    }
    return active;
  }

  private static synchronized PythonChild running(SparkContext context) {
    if (newest == null || !newest.process.isAlive()) {
      Bridge.forget();
      newest = new PythonChild(context);
    }
    return newest;
  }

  private PythonChild(SparkContext context) {
    SparkConf conf = context.getConf();
    python = pythonOf(conf);
    gateway = startedGateway(conf);
    try {
      process = builder().start();
    } catch (IOException e) {
      gateway.shutdown();
      throw failure("cannot be started: " + e.getMessage());
    }
    thread("lockgate-python-errors", this::keepLines);
    thread("lockgate-python", this::follow);
  }

  /** Only confs of the application count, so that no session chooses what runs on the driver. */
  private static String pythonOf(SparkConf conf) {
    for (String key :
        new String[] {PYTHON, "spark.pyspark.driver.python", "spark.pyspark.python"}) {
      if (conf.contains(key)) {
        return conf.get(key);
      }
    }
    for (String name : new String[] {"PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON"}) {
      String value = System.getenv(name);
      if (value != null) {
        return value;
      }
    }
    return startedByPython().orElse("python3");
  }

  /**
   * The Python whose program started this JVM, spelled as there: a link may name an environment.
   */
  private static Optional<String> startedByPython() {
    Optional<ProcessHandle> parent = ProcessHandle.current().parent();
    try {
      String line = Files.readString(Path.of("/proc/" + parent.orElseThrow().pid() + "/cmdline"));
      String program = line.split("\0", 2)[0];
      return Optional.of(program).filter(each -> PYTHON_NAME.matcher(each).matches());
    } catch (IOException | NoSuchElementException e) { // not on Linux, or the parent has ended
      return Optional.empty();
    }
  }

  private ProcessBuilder builder() {
    // Without -P Python would take modules from the folder that the server was started in.
    ProcessBuilder builder =
        new ProcessBuilder(python, "-P", "-u", "-m", "lockgate.framework.spark.session.child");
    Map<String, String> environment = builder.environment();
    environment.put("PYSPARK_GATEWAY_PORT", Integer.toString(gateway.getListeningPort()));
    environment.put("PYSPARK_GATEWAY_SECRET", gateway.secret());
    environment.put(
        "PYTHONPATH",
        PythonUtils.mergePythonPaths(
            CollectionConverters.asScala(
                    Arrays.asList(
                        environment.getOrDefault("PYTHONPATH", ""), PythonUtils.sparkPythonPath()))
                .toSeq()));
    return builder;
  }

  private static void thread(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    // Python finds the connector by it; that of a session of the Thrift server knows no spark.jars.
    thread.setContextClassLoader(PythonChild.class.getClassLoader());
    thread.setDaemon(true);
    thread.start();
  }

  /**
   * Makes and starts the gateway in a daemon thread, so that its own threads are daemons too.
   * Otherwise they would keep the JVM, which keeps the child, when an application's main method has
   * ended.
   */
  private static Py4JServer startedGateway(SparkConf conf) {
    return CompletableFuture.supplyAsync(
            () -> {
              Py4JServer made = new Py4JServer(conf); // listens from here on
              made.start();
              return made;
            },
            work -> thread("lockgate-python-gateway", work))
        .join();
  }

  /** Passes on what the child prints, and keeps the end of it for the message of a failure. */
  private void keepLines() {
    try (BufferedReader lines = reader(process.getErrorStream())) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        LOG.info(line);
        synchronized (lastLines) {
          lastLines.addLast(line);
          if (lastLines.size() > KEPT_LINES) {
            lastLines.removeFirst();
          }
        }
      }
    } catch (IOException e) {
      LOG.debug("the child's standard error cannot be read", e);
    }
  }

  /** Waits for the child's one line, which says that it answers, and then for its end. */
  private void follow() {
    try (BufferedReader lines = reader(process.getInputStream())) {
      ready.complete(lines.readLine());
      process.waitFor();
      if (!isReplaced()) {
        LOG.warn("Lockgate's Python ended with code {}", process.exitValue());
      }
    } catch (IOException | InterruptedException e) {
      ready.completeExceptionally(e);
    } finally {
      gateway.shutdown();
    }
  }

  private static BufferedReader reader(InputStream stream) {
    return new BufferedReader(new InputStreamReader(stream, StandardCharsets.UTF_8));
  }

  private void awaitReady(long seconds) throws InterruptedException {
    String answer;
    try {
      answer = ready.get(seconds, TimeUnit.SECONDS);
    } catch (TimeoutException e) {
      process.destroyForcibly();
      throw failure("did not answer within " + seconds + " s (" + SECONDS + ")");
    } catch (ExecutionException e) {
      throw failure("cannot be read from: " + e.getCause().getMessage());
    }
    if (!"ready".equals(answer)) {
      process.waitFor(5, TimeUnit.SECONDS);
      throw failure("ended before it answered");
    }
  }

  private RuntimeException failure(String what) {
    String printed;
    synchronized (lastLines) {
      printed = lastLines.isEmpty() ? "" : "; it printed:\n" + String.join("\n", lastLines);
    }
    return Failure.thrown(
        "Lockgate's Python, '"
            + python
            + "', "
            + what
            + ". It needs the package: '"
            + python
            + " -m pip install lockgate=="
            + ConnectorVersion.version()
            + "', or another Python in "
            + PYTHON
            + printed,
        "BridgeError",
        null);
  }
}

package io.lockgate.spark.lookup.owner;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.messages.Messages;
import io.lockgate.spark.messages.StartCommand;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkFiles;

/**
 * One process of an executor, with lines of JSON as messages; it is restarted whenever it ends,
 * until it is stopped.
 */
final class CacheServerProcess implements Runnable {
  private static final long FIRST_PAUSE_MILLIS = 50;
  private static final long LONGEST_PAUSE_MILLIS = 5_000;

  /** A process that lived this long was well: the next one starts without a pause. */
  private static final long WELL_AFTER_NANOS = TimeUnit.SECONDS.toNanos(10);

  private static final long GRACE_SECONDS = 2;

  /** Reads the messages of the process. */
  interface Listener {
    void receive(String line) throws InterruptedException;
  }

  private final List<String> command;
  private final String opening;
  private final Listener listener;
  private Process process;
  private boolean stopped;
  private volatile String lastError = "";

  CacheServerProcess(StartCommand order, Listener listener) {
    this.command = order.command();
    this.opening = Messages.tree(order.opening()).toString();
    this.listener = listener;
    thread(this, "lockgate-owner").start();
  }

  @Override
  public void run() {
    long pause = FIRST_PAUSE_MILLIS;
    try {
      while (!isStopped()) {
        long started = System.nanoTime();
        runOnce();
        pause = System.nanoTime() - started > WELL_AFTER_NANOS ? FIRST_PAUSE_MILLIS : pause;
        Thread.sleep(pause);
        pause = Math.min(pause * 2, LONGEST_PAUSE_MILLIS);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void runOnce() throws InterruptedException {
    Process started;
    lastError = "";
    try {
      ProcessBuilder builder = new ProcessBuilder(command);
      builder
          .environment()
          .merge(
              "PYTHONPATH", shippedFiles(), (own, shipped) -> own + File.pathSeparator + shipped);
      // As the driver's owners: Arrow gives memory back at once.
      builder.environment().putIfAbsent("MIMALLOC_PURGE_DELAY", "0");
      started = builder.start();
    } catch (IOException e) {
      ended(-1, -1, e.getMessage());
      return;
    }
    synchronized (this) {
      process = started;
      if (stopped) {
        closeInput(started);
      }
    }
    say(opening);
    Thread errors = thread(() -> copyErrors(started.getErrorStream()), "lockgate-owner-errors");
    errors.start();
    try (BufferedReader lines =
        new BufferedReader(
            new InputStreamReader(started.getInputStream(), StandardCharsets.UTF_8))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        listener.receive(line);
      }
    } catch (IOException e) {
      lastError = e.getMessage();
    }
    int code = started.waitFor();
    errors.join(TimeUnit.SECONDS.toMillis(GRACE_SECONDS));
    if (!isStopped()) {
      ended(started.pid(), code, lastError);
    }
  }

  /** The folder of files shipped with an application, `--py-files` among them. */
  private static String shippedFiles() {
    File root = new File(SparkFiles.getRootDirectory());
    StringBuilder path = new StringBuilder(root.getPath());
    File[] archives =
        root.listFiles(
            (folder, name) ->
                name.endsWith(".zip") || name.endsWith(".egg") || name.endsWith(".whl"));
    for (File archive : archives == null ? new File[0] : archives) {
      path.append(File.pathSeparator).append(archive.getPath());
    }
    return path.toString();
  }

  private void ended(long pid, int code, String error) throws InterruptedException {
    listener.receive(
        Bridge.object()
            .put("event", "ended")
            .put("pid", pid)
            .put("code", code)
            .put("stderr", error)
            .toString());
  }

  private void copyErrors(InputStream stream) {
    try (BufferedReader lines =
        new BufferedReader(new InputStreamReader(stream, StandardCharsets.UTF_8))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        System.err.println("lockgate lookup owner: " + line);
        lastError = line.isBlank() ? lastError : line;
      }
    } catch (IOException e) {
      // It ended in the middle of a line.
    }
  }

  /** Sends the process a message, if there is one at the moment. */
  synchronized void say(String line) {
    if (process == null) {
      return;
    }
    try {
      OutputStream input = process.getOutputStream();
      input.write((line + "\n").getBytes(StandardCharsets.UTF_8));
      input.flush();
    } catch (IOException e) {
      // It has just ended: the next one is told what it must know.
    }
  }

  private synchronized boolean isStopped() {
    return stopped;
  }

  /**
   * Ends the process: its input is its lease. With {@code grace} it may first do what it was told
   * last.
   */
  void stop(boolean grace) {
    Process ending;
    synchronized (this) {
      stopped = true;
      ending = process;
    }
    if (ending == null) {
      return;
    }
    if (!grace) {
      closeInput(ending);
      return;
    }
    thread(
            () -> {
              try {
                ending.waitFor(GRACE_SECONDS, TimeUnit.SECONDS);
                closeInput(ending);
                if (!ending.waitFor(GRACE_SECONDS, TimeUnit.SECONDS)) {
                  ending.destroyForcibly();
                }
              } catch (InterruptedException e) {
                closeInput(ending);
              }
            },
            "lockgate-owner-end")
        .start();
  }

  private static void closeInput(Process process) {
    try {
      process.getOutputStream().close();
    } catch (IOException e) {
      // It has ended.
    }
  }

  static Thread thread(Runnable work, String name) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    return thread;
  }
}

package io.lockgate.spark.bridge;

import java.io.Closeable;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * The registered Python of the driver: its folder, its secret, and the connections to it.
 *
 * <p>Each question has a connection of its own, for an answer may make Spark ask another question,
 * which must not wait for the first. A few connections are kept for the next questions; those that
 * nobody used for a while are closed.
 */
public final class PythonSide implements Closeable {
  private static final int KEPT = 8;

  /** More than threads ever need at once. Waiting for a free one could be a deadlock. */
  private static final int MOST = 1024;

  private static final long IDLE_NANOS = TimeUnit.SECONDS.toNanos(20);

  private final MessageFolder folder;
  private final String secret;
  private final Deque<Idle> idle = new ArrayDeque<>();
  private final ScheduledThreadPoolExecutor sweeper;
  private int open;
  private boolean sweeping;
  private boolean closed;
  private volatile int largestFrame = FrameHeader.LARGEST_FRAME;

  private record Idle(Connection connection, long since) {}

  /**
   * Connects to the socket in {@code folder}; fails if nobody answers there, or not to this secret.
   */
  public PythonSide(String folder, String secret) throws IOException {
    this.folder = new MessageFolder(Path.of(folder));
    this.secret = secret;
    this.sweeper = new ScheduledThreadPoolExecutor(1, PythonSide::thread);
    // So that there is no thread while nothing is to be closed.
    sweeper.setKeepAliveTime(1, TimeUnit.SECONDS);
    sweeper.allowCoreThreadTimeOut(true);
    give(take());
  }

  private static Thread thread(Runnable work) {
    Thread thread = new Thread(work, "lockgate-bridge");
    thread.setDaemon(true);
    return thread;
  }

  /** Tells whether this is the same Python process, listening at the same place. */
  public boolean is(String folder, String secret) {
    return this.folder.path().equals(Path.of(folder)) && this.secret.equals(secret);
  }

  /**
   * Asks and waits for the answer; {@code interruptible} says that an interrupt ends the waiting.
   */
  public byte[] ask(byte[] question, boolean interruptible) throws IOException {
    Connection connection = take();
    boolean answered = false;
    try {
      connection.limitFrames(largestFrame);
      byte[] answer = connection.ask(question, interruptible);
      answered = true;
      return answer;
    } finally {
      if (answered) {
        give(connection);
      } else {
        drop(connection);
      }
    }
  }

  /** Has payloads of more bytes go through files, for tests. */
  public void limitFrames(int bytes) {
    largestFrame = Math.min(bytes, FrameHeader.LARGEST_FRAME);
  }

  /** Returns how many connections are open, used or kept. */
  public synchronized int connections() {
    return open;
  }

  private Connection take() throws IOException {
    synchronized (this) {
      if (closed) {
        throw new IOException("Python registered again, or the application ended");
      }
      Idle last = idle.pollFirst();
      if (last != null) {
        return last.connection;
      }
      if (open >= MOST) {
        throw new IOException(MOST + " questions are open already");
      }
      open++;
    }
    try {
      return Connection.open(folder, secret);
    } catch (IOException | RuntimeException e) {
      closedOne();
      throw e;
    }
  }

  private synchronized void closedOne() {
    open--;
  }

  private void give(Connection connection) {
    synchronized (this) {
      if (!closed && idle.size() < KEPT) {
        idle.addFirst(new Idle(connection, System.nanoTime()));
        sweepLater();
        return;
      }
    }
    drop(connection);
  }

  private void drop(Connection connection) {
    connection.close();
    closedOne();
  }

  private void sweepLater() {
    if (!sweeping) {
      sweeping = true;
      sweeper.schedule(this::sweep, IDLE_NANOS, TimeUnit.NANOSECONDS);
    }
  }

  private synchronized void sweep() {
    sweeping = false;
    while (!idle.isEmpty() && System.nanoTime() - idle.peekLast().since >= IDLE_NANOS) {
      drop(idle.pollLast().connection);
    }
    if (!idle.isEmpty()) {
      sweepLater();
    }
  }

  @Override
  public synchronized void close() {
    closed = true;
    idle.forEach(each -> drop(each.connection));
    idle.clear();
    sweeper.shutdownNow();
  }

  @Override
  public String toString() {
    return "PythonSide(" + folder.socket() + ")";
  }
}

package io.lockgate.spark.files.batches;

import java.io.UncheckedIOException;
import java.nio.channels.ClosedByInterruptException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.function.Supplier;

/**
 * An answer that is asked for now, on a thread of its own, and needed later.
 *
 * <p>A new thread has the session, the user and the local properties of the thread that makes it;
 * one of a pool would have those of another.
 */
public final class EarlyAnswer<T> {
  private final FutureTask<T> task;

  private EarlyAnswer(FutureTask<T> task) {
    this.task = task;
  }

  /** Asks. */
  public static <T> EarlyAnswer<T> of(Supplier<T> question) {
    FutureTask<T> task = new FutureTask<>(question::get);
    Thread thread = new Thread(task, "lockgate-early-answer");
    thread.setDaemon(true);
    thread.start();
    return new EarlyAnswer<>(task);
  }

  /** Returns the answer, or throws what the question threw. */
  public T get() {
    try {
      return task.get();
    } catch (ExecutionException e) {
      if (e.getCause() instanceof RuntimeException failure) {
        throw failure;
      } else if (e.getCause() instanceof Error error) {
        throw error;
      }
      throw new IllegalStateException(e.getCause());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new UncheckedIOException( // by which Spark knows that a query was stopped
          "interrupted while waiting for an answer", new ClosedByInterruptException());
    }
  }
}

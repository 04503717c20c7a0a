package io.lockgate.spark.write;

import io.lockgate.spark.bridge.Failure;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.file.AccessDeniedException;
import java.util.Locale;
import java.util.stream.Stream;
import org.apache.hadoop.fs.FSError;
import org.apache.hadoop.security.AccessControlException;
import org.apache.spark.SparkThrowable;

/**
 * Errors of storage in tasks that write, with what was written where, and what to do; they have the
 * names of Python's classes.
 */
final class WriteFailures {
  private static final String NOTHING = ": nothing of the statement is visible; ";

  private WriteFailures() {}

  /** The error to throw for one that was met while a file was written. */
  static RuntimeException named(String path, Throwable failure) throws IOException {
    if (failure instanceof InterruptedIOException
        || failure instanceof ClosedByInterruptException
        || failure instanceof IOException && Thread.currentThread().isInterrupted()) {
      throw (IOException) failure;
    }
    boolean isOfStorage =
        causes(failure).anyMatch(each -> each instanceof IOException || each instanceof FSError);
    boolean isNamed = causes(failure).anyMatch(SparkThrowable.class::isInstance);
    if ((isNamed || !isOfStorage) && failure instanceof RuntimeException known) {
      return known;
    }
    return Failure.inTask(message(path, failure), failure);
  }

  private static String message(String path, Throwable failure) {
    String what = "data file " + path + " cannot be written (" + reason(failure) + ")" + NOTHING;
    if (causes(failure).anyMatch(WriteFailures::isFull)) {
      return "StorageFullError: " + what + "make room there, and run it again";
    }
    if (causes(failure)
        .anyMatch(
            each ->
                each instanceof AccessControlException
                    || each instanceof AccessDeniedException
                    || text(each).contains("Permission denied")
                    || text(each).contains("Read-only file system"))) {
      return "StorageDeniedError: " + what + "ask the owner of the folder";
    }
    return "StorageError: " + what + "run it again once the storage answers";
  }

  /** Disks, quotas of accounts, and HDFS, whose quotas are errors of their own. */
  private static boolean isFull(Throwable failure) {
    String text = text(failure).toLowerCase(Locale.ROOT);
    return text.contains("no space left") || text.contains("quota") || text.contains("disk full");
  }

  /** Returns what the first cause says. */
  private static String reason(Throwable failure) {
    return text(causes(failure).reduce(failure, (earlier, later) -> later));
  }

  private static String text(Throwable failure) {
    String message = failure.getMessage();
    return message == null || message.isBlank() ? failure.getClass().getSimpleName() : message;
  }

  private static Stream<Throwable> causes(Throwable failure) {
    return Stream.iterate(failure, each -> each != null, Throwable::getCause);
  }
}

package io.lockgate.spark.orc;

import java.io.IOException;
import org.apache.hadoop.fs.Path;

/** Raised when bytes of a file do not match their integrity tags, or when the tags are damaged or missing. */
final class IntegrityException extends IOException {
  IntegrityException(Path path, String what) {
    this(path, what, null);
  }

  IntegrityException(Path path, String what, Throwable cause) {
    super("IntegrityError: " + path + ": " + what, cause);
  }

  /** The exception of this kind among the causes of a failure, or null. */
  static IntegrityException in(Throwable failure) {
    for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
      if (cause instanceof IntegrityException found) {
        return found;
      }
    }
    return null;
  }
}

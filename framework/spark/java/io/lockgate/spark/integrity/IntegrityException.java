package io.lockgate.spark.integrity;

import java.io.IOException;
import org.apache.hadoop.fs.Path;

/**
 * Raised when bytes of a file do not match their integrity tags, or when the tags are damaged or
 * missing.
 */
public final class IntegrityException extends IOException {
  IntegrityException(Path path, String what) {
    this(path, what, null);
  }

  IntegrityException(Path path, String what, Throwable cause) {
    this("IntegrityError: " + path + ": " + what, cause);
  }

  private IntegrityException(String message, Throwable cause) {
    super(message, cause);
  }

  /**
   * Says that a file is so damaged, or so different from an ORC file, that whether it has tags
   * cannot be told.
   */
  static IntegrityException unreadable(Path path, String what, Throwable cause) {
    return new IntegrityException(
        "CorruptFileError: cannot read ORC file "
            + path
            + ": "
            + what
            + ": it is damaged, or another kind of file",
        cause);
  }

  /** The exception of this kind among the causes of a failure, or null. */
  public static IntegrityException in(Throwable failure) {
    for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
      if (cause instanceof IntegrityException found) {
        return found;
      }
    }
    return null;
  }
}

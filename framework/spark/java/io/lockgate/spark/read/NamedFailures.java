package io.lockgate.spark.read;

import io.lockgate.spark.bridge.Failure;
import io.lockgate.spark.integrity.IntegrityException;
import io.lockgate.spark.integrity.KeyCheck;
import io.lockgate.spark.keys.KeyService;
import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.file.AccessDeniedException;
import java.nio.file.NoSuchFileException;
import java.util.Locale;
import java.util.Map;
import org.apache.hadoop.security.AccessControlException;
import org.apache.spark.SparkThrowable;
import org.apache.spark.TaskKilledException;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * A data file with errors that say what is wrong, with which file of which table, and what to do;
 * they have the names of Python's classes.
 */
final class NamedFailures implements DataFileReader {
  private static final String DENIED = "(Permission denied)";

  private final DataFileReader file;
  private final Origin origin;

  /** A file that a task reads; {@code what} begins "data file" or "deletion vectors". */
  record Origin(String table, String what, String path) {
    private String name() {
      return what + " " + path + " of table " + table;
    }

    private String kind() {
      Map<String, String> kinds =
          Map.of(".orc", "ORC file", ".parquet", "Parquet file", ".avro", "Avro file");
      int dot = Math.max(path.lastIndexOf('.'), 0);
      String kind = kinds.getOrDefault(path.substring(dot).toLowerCase(Locale.ROOT), what);
      return kind + " " + path + " of table " + table;
    }
  }

  /** A step of reading. */
  @FunctionalInterface
  interface Step<T> {
    T run() throws IOException;
  }

  private NamedFailures(DataFileReader file, Origin origin) {
    this.file = file;
    this.origin = origin;
  }

  static DataFileReader open(Origin origin, Step<DataFileReader> opening) throws IOException {
    return new NamedFailures(named(origin, opening), origin);
  }

  /** Takes a step, and names what goes wrong in it. */
  static <T> T named(Origin origin, Step<T> step) throws IOException {
    try {
      return step.run();
    } catch (IOException | RuntimeException failure) {
      if (isNamed(failure)) {
        throw failure;
      }
      throw Failure.inTask(message(origin, failure), failure);
    } catch (OutOfMemoryError failure) {
      // One array that is too large leaves the others as they are: the file asked for it. Spark
      // ends
      // a process for such an error, also for one that is a cause, so it is none here.
      throw Failure.inTask(
          "CorruptFileError: reading "
              + origin.name()
              + " takes more memory than this process has ("
              + failure.getMessage()
              + "): it is damaged or malicious; if it is genuine, raise spark.executor.memory, or"
              + " lower spark.sql.orc.columnarReaderBatchSize",
          null);
    }
  }

  /** Tells whether an error says already what it is about, or is none of a file. */
  private static boolean isNamed(Exception failure) {
    return failure instanceof SparkThrowable
        || failure instanceof TaskKilledException
        || failure instanceof InterruptedIOException
        || failure instanceof ClosedByInterruptException
        || failure instanceof KeyService.KeyServiceException
        || Thread.currentThread().isInterrupted();
  }

  private static String message(Origin origin, Exception failure) {
    IntegrityException damage = IntegrityException.in(failure);
    KeyCheck.WrongKeyException wrong = caused(failure, KeyCheck.WrongKeyException.class);
    if (damage != null || wrong != null) {
      return (damage == null ? wrong : damage).getMessage() + " (table " + origin.table + ")";
    }
    if (isDenied(failure)) {
      return "StorageDeniedError: "
          + origin.name()
          + " cannot be opened: the user of this process may not read it ("
          + failure.getMessage()
          + "): ask the owner of the folder";
    }
    if (caused(failure, FileNotFoundException.class) != null
        || caused(failure, NoSuchFileException.class) != null) {
      return "SnapshotExpiredError: "
          + origin.name()
          + " does not exist: its snapshot has expired since the read was planned (read again), or"
          + " the file is missing";
    }
    return isOfStorage(failure) ? unreachable(origin, failure) : damaged(origin, failure);
  }

  private static boolean isDenied(Exception failure) {
    FileNotFoundException closed = caused(failure, FileNotFoundException.class);
    return caused(failure, AccessControlException.class) != null
        || caused(failure, AccessDeniedException.class) != null
        || closed != null && String.valueOf(closed.getMessage()).endsWith(DENIED);
  }

  /** Tells whether an error is of the way to a file, which says nothing of what the file holds. */
  private static boolean isOfStorage(Exception failure) {
    return caused(failure, java.net.SocketException.class) != null
        || caused(failure, java.net.UnknownHostException.class) != null
        || caused(failure, org.apache.hadoop.ipc.RemoteException.class) != null
        || String.valueOf(failure.getMessage()).contains("Input/output error");
  }

  private static String unreachable(Origin origin, Exception failure) {
    return "StorageError: " + origin.name() + " cannot be reached: " + reason(failure);
  }

  private static String damaged(Origin origin, Exception failure) {
    String what = caused(failure, EOFException.class) != null ? "it ends too early: " : "";
    return "CorruptFileError: cannot read "
        + origin.kind()
        + ": "
        + what
        + reason(failure)
        + ": it is damaged, or another kind of file: put it back from a copy, or roll the table"
        + " back to a snapshot without it";
  }

  /** Returns what an error and its first cause say. */
  private static String reason(Exception failure) {
    Throwable first = failure;
    while (first.getCause() != null) {
      first = first.getCause();
    }
    String message = text(failure);
    return message.contains(text(first)) ? message : message + ": " + text(first);
  }

  private static String text(Throwable failure) {
    String message = failure.getMessage();
    return message == null || message.isBlank() ? failure.getClass().getSimpleName() : message;
  }

  private static <T extends Throwable> T caused(Throwable failure, Class<T> kind) {
    for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
      if (kind.isInstance(cause)) {
        return kind.cast(cause);
      }
    }
    return null;
  }

  @Override
  public boolean keep(int[] rows, int count) {
    return file.keep(rows, count);
  }

  @Override
  public Page newPage() {
    return file.newPage();
  }

  @Override
  public boolean fill(Page page) throws IOException {
    return named(origin, () -> file.fill(page));
  }

  @Override
  public boolean nextBatch() throws IOException {
    return named(origin, file::nextBatch);
  }

  @Override
  public ColumnarBatch batch() {
    return file.batch();
  }

  @Override
  public void close() throws IOException {
    file.close();
  }
}

package io.lockgate.spark.bridge;

import java.io.IOException;
import org.apache.spark.QueryContext;
import org.apache.spark.SparkRuntimeException;
import org.apache.spark.sql.AnalysisException;
import scala.Option;

/**
 * An error of Lockgate as Spark and PySpark show it cleanly: the message alone, without a Java
 * stack.
 */
public final class Failure extends AnalysisException {
  private final String pythonType;

  private Failure(String message, String pythonType, Throwable cause) {
    super(
        message,
        Option.empty(),
        Option.empty(),
        Option.apply(cause),
        Option.empty(),
        scala.collection.immutable.Map$.MODULE$.<String, String>empty(),
        new QueryContext[0]);
    this.pythonType = pythonType;
  }

  /** The name of the Python class of the error, or null. */
  public String pythonType() {
    return pythonType;
  }

  /** A name for scripts of SQL, whose handlers look for one. */
  @Override
  public String getCondition() {
    return "LOCKGATE_ERROR";
  }

  @Override
  public String getSqlState() {
    return "AccessDeniedError".equals(pythonType) ? "42501" : "KD000";
  }

  /** Tells whether a question failed because Python was away, not because of what it answered. */
  public static boolean isUnanswered(Throwable error) {
    return error instanceof Failure && error.getCause() instanceof IOException;
  }

  /** Returns the error of ours that others wrapped, to be thrown again, or else what they threw. */
  public static RuntimeException within(Exception thrown) {
    Throwable each = thrown;
    while (each != null && !(each instanceof Failure)) {
      each = each.getCause();
    }
    return Failure.<RuntimeException>pastTheCompiler(each == null ? thrown : each);
  }

  static RuntimeException thrown(String message, String pythonType, Throwable cause) {
    return Failure.<RuntimeException>pastTheCompiler(new Failure(message, pythonType, cause));
  }

  /**
   * An error about a row, met in a task: Spark shows its message without the job's story around it.
   */
  public static SparkRuntimeException ofRow(String message) {
    return new OfTask(message, null);
  }

  /** An error that a task met in what it reads, shown like one about a row. */
  public static SparkRuntimeException inTask(String message, Throwable cause) {
    return new OfTask(message, cause);
  }

  /** Tells whether an error is one of these, and none that an expression raised. */
  public static boolean isOfTask(Throwable error) {
    return error instanceof OfTask;
  }

  private static final class OfTask extends SparkRuntimeException {
    private static final long serialVersionUID = 1;

    OfTask(String message, Throwable cause) {
      super(
          "USER_RAISED_EXCEPTION",
          new scala.collection.immutable.Map.Map1<>("errorMessage", message),
          cause,
          new QueryContext[0],
          "");
    }
  }

  @SuppressWarnings("unchecked") // erased: what is thrown stays what it is
  private static <E extends Throwable> RuntimeException pastTheCompiler(Throwable failure)
      throws E {
    throw (E) failure;
  }
}

package io.lockgate.spark.enforcement.parts;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Failure;
import java.io.Serializable;
import java.util.function.Supplier;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.InternalRow;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/**
 * Rows of a governed relation whose policy may fail. Spark's message would quote the policy and a
 * value of a row that may be hidden, so only the kind of failure is shown.
 */
public final class HiddenFailures
    extends AbstractFunction1<Iterator<InternalRow>, Iterator<InternalRow>>
    implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final String OF_FILES = "FAILED_READ_FILE";

  @Override
  public Iterator<InternalRow> apply(Iterator<InternalRow> rows) {
    // For each row: a shared method that takes any work would be a virtual call and an object more.
    return new AbstractIterator<>() {
      @Override
      public boolean hasNext() {
        try {
          return rows.hasNext();
        } catch (RuntimeException e) {
          throw hidden(e);
        }
      }

      @Override
      public InternalRow next() {
        try {
          return rows.next();
        } catch (RuntimeException e) {
          throw hidden(e);
        }
      }
    };
  }

  /** Does work of the same kind, whose failures are hidden too. */
  public static <T> T hiding(Supplier<T> work) {
    try {
      return work.get();
    } catch (RuntimeException e) {
      throw hidden(e);
    }
  }

  /**
   * Returns the kind of a failure. Failures of reading, and our refusals, name no value of a row,
   * and stay.
   */
  private static RuntimeException hidden(RuntimeException found) {
    Throwable thrown = found;
    boolean isOfExpression =
        thrown instanceof SparkThrowable
            && !(thrown instanceof AnalysisException)
            && !Failure.isOfTask(thrown)
            && !String.valueOf(((SparkThrowable) thrown).getCondition()).startsWith(OF_FILES);
    return isOfExpression
        ? Bridge.failure(
            "A row filter or a mask of a policy fails with "
                + ((SparkThrowable) thrown).getCondition()
                + " on a row of its table: tell those who make the policies")
        : found;
  }
}

package io.lockgate.spark.scan;

import io.lockgate.spark.messages.MicroBatch;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.execution.SQLExecution;

/** The micro-batch of a streaming query that this thread plans. */
public final class PlannedBatch {
  private static final String BATCH = "streaming.sql.batchId";
  private static final String QUERY = "sql.streaming.queryId";

  private PlannedBatch() {}

  /**
   * Tells whether this thread plans a micro-batch that Spark runs at once. The queries of {@code
   * foreachBatch} are parts of an execution, and may only be shown.
   */
  public static boolean isPlanned(SparkContext context) {
    return context.getLocalProperty(BATCH) != null
        && context.getLocalProperty(QUERY) != null
        && context.getLocalProperty(SQLExecution.EXECUTION_ID_KEY()) == null;
  }

  /** The streaming query and the number of the micro-batch, null outside a stream. */
  public static MicroBatch of(SparkContext context) {
    return new MicroBatch(context.getLocalProperty(BATCH), context.getLocalProperty(QUERY));
  }
}

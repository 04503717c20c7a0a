package io.lockgate.spark.scan;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.execution.SQLExecution;

/** The micro-batch of a streaming query that this thread plans. */
public final class MicroBatch {
  private static final String BATCH = "streaming.sql.batchId";
  private static final String QUERY = "sql.streaming.queryId";

  private MicroBatch() {}

  /**
   * Tells whether this thread plans a micro-batch that Spark runs at once. The queries of {@code
   * foreachBatch} are parts of an execution, and may only be shown.
   */
  public static boolean isPlanned(SparkContext context) {
    return context.getLocalProperty(BATCH) != null
        && context.getLocalProperty(QUERY) != null
        && context.getLocalProperty(SQLExecution.EXECUTION_ID_KEY()) == null;
  }

  /** Adds the streaming query and the number of the micro-batch, null outside a stream. */
  public static void put(ObjectNode ask, SparkContext context) {
    ask.putObject("properties")
        .put("batch_id", context.getLocalProperty(BATCH))
        .put("query_id", context.getLocalProperty(QUERY));
  }
}

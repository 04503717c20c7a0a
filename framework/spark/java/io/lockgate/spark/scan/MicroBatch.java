package io.lockgate.spark.scan;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.SparkContext;

/** The micro-batch of a streaming query that this thread plans. */
public final class MicroBatch {
  private MicroBatch() {}

  /** Adds the streaming query and the number of the micro-batch, null outside a stream. */
  public static void put(ObjectNode ask, SparkContext context) {
    ask.putObject("properties")
        .put("batch_id", context.getLocalProperty("streaming.sql.batchId"))
        .put("query_id", context.getLocalProperty("sql.streaming.queryId"));
  }
}

package io.lockgate.spark.rules.writes;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.spark.SparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.QueryExecution$;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction1;

/**
 * One reading of a plan, whose rows stay on the executors until the statement ends.
 *
 * <p>They are a local checkpoint: rows that are lost with an executor are not read again, which
 * could give others; the statement fails.
 */
public final class SingleReading {
  private static final String EXECUTION = "spark.sql.execution.id";

  private static final Set<SparkContext> FOLLOWED = Collections.newSetFromMap(new WeakHashMap<>());
  private static final Map<Long, List<RDD<InternalRow>>> BY_EXECUTION = new HashMap<>();

  private LogicalPlan plan;
  private RDD<InternalRow> rows;
  private RuntimeException failure;

  /** Says what to read; of equal plans the last. */
  synchronized void of(LogicalPlan optimized) {
    plan = optimized;
  }

  /** The rows, read by the first who asks while the others wait. */
  synchronized RDD<InternalRow> rows(SparkSession session) {
    if (failure != null) {
      throw failure;
    }
    if (rows == null) {
      try {
        rows = read(session);
      } catch (RuntimeException failed) {
        failure = failed;
        throw failed;
      }
    }
    return rows;
  }

  private RDD<InternalRow> read(SparkSession session) {
    RDD<InternalRow> read =
        QueryExecution$.MODULE$
            .prepareExecutedPlan(session, plan)
            .execute()
            .map(new Copy(), ClassTag$.MODULE$.apply(InternalRow.class))
            .setName("rows that a statement reads once")
            .localCheckpoint();
    removeAtEnd(session.sparkContext(), read);
    read.count();
    return read;
  }

  /** A statement without an execution leaves the rows to Spark's cleaner. */
  private static void removeAtEnd(SparkContext context, RDD<InternalRow> rows) {
    String execution = context.getLocalProperty(EXECUTION);
    if (execution == null) {
      return;
    }
    synchronized (BY_EXECUTION) {
      if (FOLLOWED.add(context)) {
        context.addSparkListener(new Ends());
      }
      BY_EXECUTION.computeIfAbsent(Long.parseLong(execution), each -> new ArrayList<>()).add(rows);
    }
  }

  /** Removes rows when their statements end, in whatever way. */
  private static final class Ends extends SparkListener {
    @Override
    public void onOtherEvent(SparkListenerEvent event) {
      if (event instanceof SparkListenerSQLExecutionEnd end) {
        List<RDD<InternalRow>> ended;
        synchronized (BY_EXECUTION) {
          ended = BY_EXECUTION.remove(end.executionId());
        }
        if (ended != null) {
          ended.forEach(rows -> rows.unpersist(false));
        }
      }
    }
  }

  /** Spark uses a row again for the next one. */
  private static final class Copy extends AbstractFunction1<InternalRow, InternalRow>
      implements Serializable {
    private static final long serialVersionUID = 1L;

    @Override
    public InternalRow apply(InternalRow row) {
      return row.copy();
    }
  }
}

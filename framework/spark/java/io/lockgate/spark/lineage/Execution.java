package io.lockgate.spark.lineage;

import io.lockgate.spark.enforcement.parts.StatementText;
import io.lockgate.spark.write.Committed;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.catalyst.plans.logical.CommandResult;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.streaming.runtime.IncrementalExecution;
import scala.jdk.javaapi.CollectionConverters;

/**
 * An execution of SQL that has ended.
 *
 * <p>{@code root} is the one that it ran inside of, its own number if there is none. {@code confs}
 * are those of the session when it began.
 */
record Execution(
    long id,
    long root,
    String name,
    QueryExecution plans,
    long started,
    long ended,
    String description,
    Map<String, String> confs,
    String error) {
  boolean isNested() {
    return root != id;
  }

  boolean isAnalysed() {
    return plans.tracker().phases().contains(QueryPlanningTracker.ANALYSIS());
  }

  boolean isBatch() {
    return plans instanceof IncrementalExecution;
  }

  /**
   * Tells whether only the empty result of a command is fetched, which ran in an execution before.
   */
  boolean fetchesResult() {
    return !isBatch()
        && Statement.isCommand(plans.analyzed())
        && plans.commandExecuted() instanceof CommandResult;
  }

  boolean isCheckpoint() {
    return name != null && name.toLowerCase().endsWith("checkpoint");
  }

  boolean hasHiddenOrigin() {
    return hides(plans.analyzed());
  }

  private static boolean hides(LogicalPlan plan) {
    return Datasets.hidesItsOrigin(plan)
        || CollectionConverters.asJava(plan.children()).stream().anyMatch(Execution::hides);
  }

  List<Committed.Commit> commits() {
    return Committed.take(id);
  }

  /** The statement as somebody wrote it, or null for one of DataFrames. */
  String sql() {
    return StatementText.of(plans.logical());
  }
}

package io.lockgate.spark.lineage;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.write.Committed;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.CommandResult;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.Origin;
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

  boolean isBatch() {
    return plans instanceof IncrementalExecution;
  }

  /**
   * Tells whether only the empty result of a command is fetched, which ran in an execution before.
   */
  boolean fetchesResult() {
    return !isBatch()
        && plans.analyzed() instanceof Command
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

  List<ObjectNode> commits() {
    return Committed.take(id);
  }

  /** The statement as somebody wrote it, or null for one of DataFrames. */
  String sql() {
    return sql(plans.logical(), 3);
  }

  /** Some nodes that the parser makes do not know the text, but those below them do. */
  private static String sql(LogicalPlan plan, int levels) {
    Origin origin = plan.origin();
    if (origin.sqlText().isDefined() && origin.objectType().isEmpty()) {
      return origin.sqlText().get();
    }
    for (int i = 0; levels > 0 && i < plan.children().length(); i++) {
      String found = sql(plan.children().apply(i), levels - 1);
      if (found != null) {
        return found;
      }
    }
    return null;
  }
}

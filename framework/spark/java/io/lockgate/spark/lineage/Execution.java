package io.lockgate.spark.lineage;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.write.Committed;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.CommandResult;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.streaming.runtime.IncrementalExecution;
import scala.collection.immutable.Seq;
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

  List<ObjectNode> commits() {
    return Committed.take(id);
  }

  /** The statement as somebody wrote it, or null for one of DataFrames. */
  String sql() {
    return sql(plans.logical(), 3);
  }

  /** Text of a view or of a function is not that of the statement that reads it. */
  private static boolean isOfStatement(Origin origin) {
    return origin.objectType().isEmpty() || origin.objectType().get().equals("EXECUTE IMMEDIATE");
  }

  /**
   * Some nodes that the parser makes do not know the text, but those below them do. A command that
   * was analysed keeps those inside of it.
   */
  private static String sql(TreeNode<?> plan, int levels) {
    Origin origin = plan.origin();
    if (origin.sqlText().isDefined() && isOfStatement(origin)) {
      return origin.sqlText().get();
    }
    String found = levels == 0 ? null : sql(plan.children(), levels - 1);
    return found != null || levels == 0 ? found : sql(plan.innerChildren(), levels - 1);
  }

  private static String sql(Seq<?> nodes, int levels) {
    for (Object node : CollectionConverters.asJava(nodes)) {
      String found = node instanceof TreeNode<?> plan ? sql(plan, levels) : null;
      if (found != null) {
        return found;
      }
    }
    return null;
  }
}

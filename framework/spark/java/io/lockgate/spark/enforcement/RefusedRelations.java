package io.lockgate.spark.enforcement;

import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.catalyst.analysis.CleanupAliases;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;

/**
 * Refuses a statement on a relation of which the user may read nothing, as soon as it is analysed,
 * because its columns are hidden too. The message names denied columns of other relations too.
 *
 * <p>No check of Spark's: it would add the plan, with these columns, to the message.
 */
final class RefusedRelations {
  private final SparkSession session;

  /** For one session. */
  RefusedRelations(SparkSession session) {
    this.session = session;
  }

  /**
   * Refuses a statement that reads one; Spark's own error for an unresolved one would name columns.
   * Subqueries and bodies of views, which are analysed by themselves, wait for their statement.
   */
  void check(LogicalPlan plan) {
    AnalysisContext context = AnalysisContext.get();
    boolean isWhole = context.outerPlan().isEmpty() && context.nestedViewDepth() == 0;
    if ((isWhole || !plan.resolved())
        && (isThere(plan) || plan.subqueriesAll().exists(RefusedRelations::isThere))) {
      optimize(plan);
      LastCheck.check(plan); // a query may be known to have no rows
    }
  }

  private static boolean isThere(LogicalPlan plan) {
    return plan.exists(each -> each instanceof Barrier barrier && barrier.guarded().refused());
  }

  /** Refuses a query by what is left of its columns, of all relations in one message. */
  private void optimize(LogicalPlan plan) {
    if (plan.resolved() && !(plan instanceof Command) && !plan.isStreaming()) {
      try {
        session.sessionState().optimizer().execute(CleanupAliases.apply(plan.clone()));
      } catch (RuntimeException e) {
        return; // then the message names what is refused whole
      }
    }
  }
}

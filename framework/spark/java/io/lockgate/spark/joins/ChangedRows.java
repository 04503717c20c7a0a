package io.lockgate.spark.joins;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.governance.PlanWalk;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.RowLevelWrite;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Refuses lookups in MERGE, UPDATE and DELETE. Spark reads the queries of such a statement several
 * times, to find files and to find rows; a lookup could find other rows each time.
 */
final class ChangedRows {
  /** The start of the name of a column that every lookup has, once Python has planned it. */
  private static final String PLANNED = "__lockgate_mark_";

  private ChangedRows() {}

  /** Throws AnalysisException for a lookup in such a statement, planned or not. */
  static void refuseLookups(LogicalPlan plan) {
    for (LogicalPlan child : CollectionConverters.asJava(plan.children())) {
      refuseLookups(child);
    }
    String statement = statement(plan);
    if (statement == null) {
      return;
    }
    new PlanWalk(
            part -> {
              if (part instanceof LookupTable || isPlanned(part)) {
                throw Bridge.failure(
                    statement
                        + " cannot use a join FOR SYSTEM_TIME AS OF PROCTIME(), because Spark reads"
                        + " its queries several times: run CREATE TABLE s AS SELECT ... with the"
                        + " join first, then "
                        + statement
                        + " with s");
              }
              return null;
            })
        .over(plan);
  }

  /** The name of a statement that changes rows, or null; Spark rewrites most while it analyses. */
  private static String statement(LogicalPlan plan) {
    if (plan instanceof RowLevelWrite write) {
      return write.operation().command().name();
    } else if (plan instanceof MergeIntoTable) {
      return "MERGE";
    } else if (plan instanceof UpdateTable) {
      return "UPDATE";
    }
    return plan instanceof DeleteFromTable ? "DELETE" : null;
  }

  /** Subqueries and views are planned before the statement around them. */
  private static boolean isPlanned(LogicalPlan plan) {
    return plan instanceof Project project
        && CollectionConverters.asJava(project.projectList()).stream()
            .anyMatch(each -> each instanceof Alias alias && alias.name().startsWith(PLANNED));
  }
}

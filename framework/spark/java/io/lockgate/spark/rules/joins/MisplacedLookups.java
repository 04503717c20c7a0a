package io.lockgate.spark.rules.joins;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.enforcement.parts.PlanWalk;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LateralJoin;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.RowLevelWrite;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.trees.TreePattern$;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** Refuses FOR SYSTEM_TIME AS OF PROCTIME() where nothing is looked up. */
public final class MisplacedLookups extends AbstractFunction1<LogicalPlan, BoxedUnit> {
  public static final MisplacedLookups CHECK = new MisplacedLookups();

  private static final String INSTEAD =
      ": write it behind the table that a stream is joined with, FROM orders AS o JOIN lake.db.dim"
          + " FOR SYSTEM_TIME AS OF o.proc_time AS d ON o.k = d.id; VERSION AS OF and TIMESTAMP AS"
          + " OF read a table as it was";

  /** The start of the name of a column that every lookup has, once Python has planned it. */
  private static final String PLANNED = "__lockgate_mark_";

  private MisplacedLookups() {}

  @Override
  public BoxedUnit apply(LogicalPlan plan) {
    if (isLookupIn(plan)) {
      throw Bridge.failure("FOR SYSTEM_TIME AS OF PROCTIME() " + where(plan) + INSTEAD);
    }
    return BoxedUnit.UNIT;
  }

  /**
   * Throws AnalysisException for a lookup, planned or not, in MERGE, UPDATE or DELETE. Spark reads
   * the queries of such a statement several times, to find files and to find rows; a lookup could
   * find other rows each time.
   */
  static void refuseInChanges(LogicalPlan plan) {
    for (LogicalPlan child : CollectionConverters.asJava(plan.children())) {
      refuseInChanges(child);
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

  /**
   * Throws AnalysisException for a lookup, planned or not, in a LATERAL subquery. Spark repeats
   * such a query for each row around it, so it refuses what a lookup is made of.
   */
  static void refuseInLateral(LogicalPlan plan) {
    if (!plan.containsPattern(TreePattern$.MODULE$.LATERAL_JOIN())) {
      return;
    }
    new PlanWalk(
            part -> {
              if (part instanceof LateralJoin lateral && usesLookup(lateral.right().plan())) {
                throw Bridge.failure(
                    "a LATERAL subquery cannot use a join FOR SYSTEM_TIME AS OF PROCTIME(), because"
                        + " Spark repeats the subquery for each row: join the table with the outer"
                        + " rows themselves, FROM orders AS o JOIN lake.db.dim FOR SYSTEM_TIME AS"
                        + " OF o.proc_time AS d ON o.k = d.id");
              }
              return null;
            })
        .over(plan);
  }

  private static boolean usesLookup(LogicalPlan plan) {
    boolean[] found = {false};
    new PlanWalk(
            part -> {
              found[0] |= part instanceof LookupTable || isPlanned(part);
              return found[0] ? part : null;
            })
        .over(plan);
    return found[0];
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

  private static String where(LogicalPlan plan) {
    boolean isLeft =
        plan.exists(each -> each instanceof Join join && LookupSide.of(join.left()) != null);
    return isLeft
        ? "stands on the left side of a join, where the stream belongs"
        : "stands at a table that nothing looks up in";
  }

  /** Tells whether a lookup waits to be planned anywhere in a plan. */
  static boolean isLookupIn(LogicalPlan plan) {
    return plan instanceof LookupTable
        || CollectionConverters.asJava(plan.children()).stream()
            .anyMatch(MisplacedLookups::isLookupIn)
        || isInside(plan);
  }

  private static boolean isInside(LogicalPlan plan) {
    return plan.containsPattern(TreePattern$.MODULE$.PLAN_EXPRESSION())
            && CollectionConverters.asJava(plan.subqueries()).stream()
                .anyMatch(MisplacedLookups::isLookupIn)
        || CollectionConverters.asJava(plan.innerChildren()).stream()
            .anyMatch(each -> each instanceof LogicalPlan query && isLookupIn(query));
  }
}

package io.lockgate.spark.joins;

import io.lockgate.spark.bridge.Bridge;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreePattern$;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** Refuses FOR SYSTEM_TIME AS OF PROCTIME() where nothing is looked up. */
public final class StrayLookups extends AbstractFunction1<LogicalPlan, BoxedUnit> {
  public static final StrayLookups CHECK = new StrayLookups();

  private static final String INSTEAD =
      ": write it behind the table that a stream is joined with, FROM orders AS o JOIN lake.db.dim"
          + " FOR SYSTEM_TIME AS OF o.proc_time AS d ON o.k = d.id; VERSION AS OF and TIMESTAMP AS"
          + " OF read a table as it was";

  private StrayLookups() {}

  @Override
  public BoxedUnit apply(LogicalPlan plan) {
    if (isLookupIn(plan)) {
      throw Bridge.failure("FOR SYSTEM_TIME AS OF PROCTIME() " + where(plan) + INSTEAD);
    }
    return BoxedUnit.UNIT;
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
        || CollectionConverters.asJava(plan.children()).stream().anyMatch(StrayLookups::isLookupIn)
        || isInside(plan);
  }

  private static boolean isInside(LogicalPlan plan) {
    return plan.containsPattern(TreePattern$.MODULE$.PLAN_EXPRESSION())
            && CollectionConverters.asJava(plan.subqueries()).stream()
                .anyMatch(StrayLookups::isLookupIn)
        || CollectionConverters.asJava(plan.innerChildren()).stream()
            .anyMatch(each -> each instanceof LogicalPlan query && isLookupIn(query));
  }
}

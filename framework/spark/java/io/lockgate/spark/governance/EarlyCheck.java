package io.lockgate.spark.governance;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.rules.Rule;

/**
 * Refuses a query with denied columns before its scans are planned, with all of them in one
 * message. Safety does not depend on it: {@link LastCheck} checks again.
 */
public final class EarlyCheck extends Rule<LogicalPlan> {
  /** Keeps nothing, so that all sessions share it. */
  public static final EarlyCheck RULE = new EarlyCheck();

  private EarlyCheck() {}

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (!(plan instanceof Subquery)) {
      Needs needs = Needs.active();
      if (needs != null) {
        needs.end(plan);
      }
      LastCheck.check(plan);
    }
    return plan;
  }
}

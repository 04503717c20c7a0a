package io.lockgate.spark.rules.joins;

import io.lockgate.spark.enforcement.RequiredColumns;
import io.lockgate.spark.enforcement.parts.PlanWalk;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;

/**
 * Plans the lookup joins of a statement whose names and types are all known.
 *
 * <p>Until then they are joins like any other, which Spark resolves by its own rules.
 */
public final class LookupJoins extends Rule<LogicalPlan> {
  private final SparkSession session;

  /** Makes the rule of one session. */
  public LookupJoins(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (!plan.resolved()) {
      return plan;
    }
    MisplacedLookups.refuseInChanges(plan);
    MisplacedLookups.refuseInLateral(plan);
    if (!MisplacedLookups.isLookupIn(plan)) {
      return plan;
    }
    if (RequiredColumns.isCollecting()) {
      // The rights of the statement are the question: a lookup takes those of its join.
      return new PlanWalk(LookupJoins::withoutClause).over(plan);
    }
    WantedColumns wanted = WantedColumns.of(plan);
    return new Walk(wanted).walk.over(plan);
  }

  private static LogicalPlan withoutClause(LogicalPlan plan) {
    return plan instanceof LookupTable table ? table.child() : null;
  }

  /** One walk over a statement: each join after those below it. */
  private final class Walk {
    private final PlanWalk walk = new PlanWalk(this::planned);
    private final WantedColumns wanted;

    Walk(WantedColumns wanted) {
      this.wanted = wanted;
    }

    private LogicalPlan planned(LogicalPlan plan) {
      if (!(plan instanceof Join join)) {
        return null;
      }
      LookupSide side = LookupSide.of(join.right());
      return side == null
          ? null
          : new LookupPlan(session, join, side, column -> wanted.has(join, column))
              .over(walk.over(join.left()));
    }
  }
}

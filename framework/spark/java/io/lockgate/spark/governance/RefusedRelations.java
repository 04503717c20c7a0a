package io.lockgate.spark.governance;

import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * Refuses a statement on a relation of which the user may read nothing, as soon as it is analysed,
 * because its columns are hidden too. The message names denied columns of other relations too.
 */
public final class RefusedRelations extends AbstractFunction1<LogicalPlan, BoxedUnit> {
  private final SparkSession session;

  /** For one session. */
  public RefusedRelations(SparkSession session) {
    this.session = session;
  }

  @Override
  public BoxedUnit apply(LogicalPlan plan) {
    if (isThere(plan)) {
      optimize(plan);
      LastCheck.check(plan); // a query may be known to have no rows
    }
    return BoxedUnit.UNIT;
  }

  /** Refuses a plan that reads one at all. */
  static void check(LogicalPlan plan) {
    if (isThere(plan)) {
      LastCheck.check(plan);
    }
  }

  private static boolean isThere(LogicalPlan plan) {
    return plan.exists(each -> each instanceof Barrier barrier && barrier.guarded().refused());
  }

  /** Refuses a query by what is left of its columns, of all relations in one message. */
  private void optimize(LogicalPlan plan) {
    if (!(plan instanceof Command) && !plan.isStreaming()) {
      try {
        session.sessionState().optimizer().execute(plan.clone());
      } catch (RuntimeException e) {
        return; // then the message names what is refused whole
      }
    }
  }
}

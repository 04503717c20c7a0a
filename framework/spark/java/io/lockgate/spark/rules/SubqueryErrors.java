package io.lockgate.spark.rules;

import io.lockgate.spark.files.batches.LateRow;
import io.lockgate.spark.scan.LockgateScan;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.LocalTableScanExec;
import org.apache.spark.sql.execution.ScalarSubquery;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SubqueryExec;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Shows errors that a scalar subquery met in a table of ours, such as {@code t$pin} of a lookup.
 *
 * <p>Spark runs subqueries in threads of their own and wraps what they throw, so that a query, and
 * above all a stream, would end with the words "Exception thrown in awaitResult" alone.
 */
public final class SubqueryErrors extends Rule<SparkPlan> {
  /** For the stages of adaptive plans. */
  public static final Rule<SparkPlan> RULE = new SubqueryErrors();

  /** For all other plans: the one place that Spark has for rules of whole physical plans. */
  public static final ColumnarRule OF_PLANS = new OfPlans();

  private SubqueryErrors() {}

  @Override
  public SparkPlan apply(SparkPlan plan) {
    return plan.mapChildren(this::apply).mapExpressions(SubqueryErrors::shown);
  }

  private static Expression shown(Expression expression) {
    if (expression instanceof ScalarSubquery query
        && query.plan() instanceof SubqueryExec plan
        && readsOurs(plan.child())) {
      return query.withNewPlan(new NamedSubqueryExec(plan));
    }
    return expression.mapChildren(SubqueryErrors::shown);
  }

  private static boolean readsOurs(SparkPlan plan) {
    if (plan instanceof AdaptiveSparkPlanExec adaptive) {
      return readsOurs(adaptive.executedPlan());
    } else if (plan instanceof QueryStageExec stage) {
      return readsOurs(stage.plan());
    } else if (plan instanceof LocalTableScanExec local) {
      return CollectionConverters.asJava(local.rows()).stream().anyMatch(LateRow.class::isInstance);
    }
    return plan instanceof DriverScanExec
        || plan instanceof BatchScanExec read && read.scan() instanceof LockgateScan
        || CollectionConverters.asJava(plan.children()).stream()
            .anyMatch(SubqueryErrors::readsOurs);
  }

  private static final class OfPlans extends ColumnarRule {
    @Override
    public Rule<SparkPlan> preColumnarTransitions() {
      return RULE;
    }
  }
}

package io.lockgate.spark.rules.joins;

import com.fasterxml.jackson.databind.JsonNode;
import io.lockgate.spark.bridge.Predicates;
import io.lockgate.spark.rules.Untranslatable;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.optimizer.ConstantFolding$;
import org.apache.spark.sql.catalyst.optimizer.LikeSimplification$;
import org.apache.spark.sql.catalyst.optimizer.ReplaceExpressions$;
import org.apache.spark.sql.catalyst.optimizer.UnwrapCastInBinaryComparison$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreePattern$;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$;

/** Conditions on the table of a lookup as Python reads predicates. */
final class TableConditions {
  private TableConditions() {}

  /** A condition as JSON; null where Spark cannot say it to a table. */
  static JsonNode json(Expression condition, LogicalPlan table) {
    // A condition that changes with the time of a query is not one of a cache.
    if (condition.containsPattern(TreePattern$.MODULE$.CURRENT_LIKE())) {
      return null;
    }
    Expression plain = simplified(condition, table);
    if (Untranslatable.fails(plain)) {
      return null;
    }
    var predicate = DataSourceV2Strategy$.MODULE$.translateFilterV2(plain);
    return predicate.isDefined() ? Predicates.toJson(predicate.get()) : null;
  }

  /** A condition of columns and constants, without what Spark adds to compare them. */
  private static Expression simplified(Expression condition, LogicalPlan table) {
    LogicalPlan plan = new Filter(condition, table);
    plan = ReplaceExpressions$.MODULE$.apply(plan);
    plan = ConstantFolding$.MODULE$.apply(plan);
    plan = UnwrapCastInBinaryComparison$.MODULE$.apply(plan);
    plan = LikeSimplification$.MODULE$.apply(plan);
    return plan instanceof Filter filter ? filter.condition() : condition;
  }
}

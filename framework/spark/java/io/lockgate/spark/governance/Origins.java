package io.lockgate.spark.governance;

import java.lang.reflect.Field;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.SupportQueryContext;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.trees.CurrentOrigin$;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The texts that expressions were parsed from, which Spark quotes in messages wherever it computes
 * them, as the optimizer does with constants. Those of a policy are not for its user to read.
 */
final class Origins {
  private static final Field ORIGIN = field();

  private Origins() {}

  /** The expression, which knows its text no more; nor does what is made of it. */
  static Expression without(Expression found) {
    Origin before = CurrentOrigin$.MODULE$.get();
    CurrentOrigin$.MODULE$.reset();
    try {
      clear(found, CurrentOrigin$.MODULE$.get());
    } finally {
      CurrentOrigin$.MODULE$.set(before);
    }
    return found;
  }

  private static void clear(TreeNode<?> node, Origin empty) {
    try {
      ORIGIN.set(node, empty);
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(e);
    }
    if (node instanceof SupportQueryContext quoting) {
      quoting.queryContext_$eq(Option.apply(empty.context()));
    }
    if (node instanceof QueryPlan<?> plan) {
      CollectionConverters.asJava(plan.expressions()).forEach(each -> clear(each, empty));
    } else if (node instanceof PlanExpression<?> query) {
      clear((TreeNode<?>) query.plan(), empty);
    }
    CollectionConverters.asJava(node.children())
        .forEach(child -> clear((TreeNode<?>) child, empty));
  }

  private static Field field() {
    try {
      Field found = TreeNode.class.getDeclaredField("origin");
      found.setAccessible(true);
      return found;
    } catch (NoSuchFieldException e) {
      throw new IllegalStateException(e);
    }
  }
}

package io.lockgate.spark.enforcement;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.StringPredicate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import scala.Function1;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Moves filters of a user through a barrier if they can neither fail nor reveal anything:
 * comparisons of unmasked columns with constants and with one another. So scans still skip files.
 *
 * <p>Safety does not depend on this rule: without it a query reads more.
 */
public final class PushLeakproof extends Rule<LogicalPlan> {
  /** Keeps nothing, so that all sessions share it. */
  public static final PushLeakproof RULE = new PushLeakproof();

  private PushLeakproof() {}

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.transformDown(new Pushing());
  }

  private static final class Pushing extends AbstractPartialFunction<LogicalPlan, LogicalPlan> {
    @Override
    public boolean isDefinedAt(LogicalPlan plan) {
      return plan instanceof Filter filter && filter.child() instanceof Barrier;
    }

    @Override
    @SuppressWarnings("unchecked") // a plan takes the place of one
    public <A extends LogicalPlan, B> B applyOrElse(A plan, Function1<A, B> otherwise) {
      return plan instanceof Filter filter && filter.child() instanceof Barrier barrier
          ? (B) pushed(filter, barrier)
          : otherwise.apply(plan);
    }
  }

  private static LogicalPlan pushed(Filter filter, Barrier barrier) {
    List<Expression> passing = new ArrayList<>();
    List<Expression> staying = new ArrayList<>();
    split(filter.condition(), barrier, passing, staying);
    if (passing.isEmpty()) {
      return filter;
    }
    Barrier lower = barrier.over(new Filter(all(passing), barrier.child()));
    return staying.isEmpty() ? lower : new Filter(all(staying), lower);
  }

  private static Expression all(List<Expression> conditions) {
    return conditions.stream().reduce(And::new).get();
  }

  private static void split(
      Expression condition, Barrier barrier, List<Expression> passing, List<Expression> staying) {
    if (condition instanceof And and) {
      split(and.left(), barrier, passing, staying);
      split(and.right(), barrier, passing, staying);
    } else {
      (isLeakproof(condition, barrier.child()) ? passing : staying).add(condition);
    }
  }

  private static boolean isLeakproof(Expression condition, LogicalPlan below) {
    if (condition instanceof BinaryComparison comparison) {
      return (isShown(comparison.left(), below) || comparison.left() instanceof Literal)
          && (isShown(comparison.right(), below) || comparison.right() instanceof Literal);
    } else if (condition instanceof In in) {
      return isShown(in.value(), below)
          && CollectionConverters.asJava(in.list()).stream().allMatch(Literal.class::isInstance);
    } else if (condition instanceof InSet in) {
      return isShown(in.child(), below);
    } else if (condition instanceof StringPredicate text) {
      return isShown(text.left(), below) && text.right() instanceof Literal;
    } else if (condition instanceof IsNull || condition instanceof IsNotNull) {
      return isShown(condition.children().apply(0), below);
    }
    boolean joins = condition instanceof Or || condition instanceof Not;
    return joins
        && CollectionConverters.asJava(condition.children()).stream()
            .allMatch(each -> isLeakproof(each, below));
  }

  /** Tells whether a value is a column of the relation as it is stored. */
  private static boolean isShown(Expression value, LogicalPlan below) {
    return value instanceof AttributeReference column && comesFrom(column, below);
  }

  private static boolean comesFrom(Attribute column, LogicalPlan below) {
    if (below instanceof Filter filter) {
      return comesFrom(column, filter.child());
    } else if (below instanceof Project project) {
      return CollectionConverters.asJava(project.projectList()).stream()
          .anyMatch(each -> each.exprId().equals(column.exprId()) && isColumn(each));
    }
    return below.children().isEmpty();
  }

  private static boolean isColumn(NamedExpression found) {
    Expression origin = found instanceof Alias alias ? alias.child() : (Expression) found;
    return origin instanceof AttributeReference;
  }
}

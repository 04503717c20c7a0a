package io.lockgate.spark.rules;

import io.lockgate.spark.catalog.LockgateTable;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.util.V2ExpressionBuilder;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$;
import org.apache.spark.sql.types.DataTypes;
import scala.Function1;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Keeps conditions from Spark's translation for sources where it would end the query by {@code
 * assertion failed}.
 *
 * <p>Spark's {@code V2ExpressionBuilder} demands that the parts of AND, OR and NOT become
 * predicates. A null becomes a literal instead, and the optimizer makes nulls of comparisons that
 * no value fulfils, such as {@code a = 1.5} for whole numbers (SPARK-49113). Each smallest part
 * that fails is {@link Wrapped}, so that the translation passes over it; the rest of a filter is
 * pushed as ever.
 */
public final class Untranslatable {
  /** Wraps; among the optimizer's own rules, since translations follow right after those. */
  public static final Rule<LogicalPlan> WRAPPING = new Wrapping();

  /** Takes out what is wrapped, once the scans are made. */
  static final Rule<LogicalPlan> UNWRAPPING = new Unwrapping();

  private Untranslatable() {}

  /** Tells whether an attempt to translate an expression is an error. */
  public static boolean fails(Expression expression) {
    try {
      translated(expression);
      return false;
    } catch (AssertionError assertion) {
      return true;
    }
  }

  /**
   * Tells whether Spark has a translation of the whole expression; throws AssertionError where it
   * fails.
   */
  private static boolean translated(Expression expression) {
    if (isBoolean(expression)) {
      DataSourceV2Strategy$.MODULE$.translateFilterV2(expression);
    }
    return new V2ExpressionBuilder(expression, false).build().isDefined();
  }

  private static boolean isBoolean(Expression expression) {
    return expression.dataType().equals(DataTypes.BooleanType);
  }

  /** The plan with each expression of each node changed. */
  private static LogicalPlan changed(LogicalPlan plan, Function1<Expression, Expression> change) {
    return plan.mapChildren(child -> changed(child, change)).mapExpressions(change);
  }

  private static final class Wrapping extends Rule<LogicalPlan> {
    @Override
    public LogicalPlan apply(LogicalPlan plan) {
      return readsOurs(plan) ? changed(plan, Wrapping::mended) : plan;
    }

    private static Expression mended(Expression expression) {
      if (!mayFail(expression) || isFine(expression)) {
        return expression;
      }
      Expression mended = expression.mapChildren(Wrapping::mended);
      return isBoolean(mended) && fails(mended) ? new Wrapped(mended) : mended;
    }

    /**
     * Of what has no translation, such as an alias or a sort order, Spark may still translate the
     * parts.
     */
    private static boolean isFine(Expression expression) {
      try {
        return translated(expression);
      } catch (AssertionError assertion) {
        return false;
      }
    }

    /** Only these assert something of their parts. */
    private static boolean mayFail(Expression expression) {
      return !(expression instanceof Wrapped)
          && (expression instanceof And
              || expression instanceof Or
              || expression instanceof Not
              || CollectionConverters.asJava(expression.children()).stream()
                  .anyMatch(Wrapping::mayFail));
    }

    private static boolean readsOurs(LogicalPlan plan) {
      return plan instanceof DataSourceV2Relation relation && isOurs(relation.table())
          || CollectionConverters.asJava(plan.children()).stream().anyMatch(Wrapping::readsOurs);
    }

    private static boolean isOurs(Table table) {
      return table instanceof LockgateTable
          || table instanceof RowLevelOperationTable rows && rows.table() instanceof LockgateTable;
    }
  }

  private static final class Unwrapping extends Rule<LogicalPlan> {
    @Override
    public LogicalPlan apply(LogicalPlan plan) {
      return changed(plan, Unwrapping::unwrapped);
    }

    private static Expression unwrapped(Expression expression) {
      return expression instanceof Wrapped wrapped
          ? unwrapped(wrapped.child())
          : expression.mapChildren(Unwrapping::unwrapped);
    }
  }
}

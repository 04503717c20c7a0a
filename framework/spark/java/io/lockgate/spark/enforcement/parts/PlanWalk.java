package io.lockgate.spark.enforcement.parts;

import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import scala.Function1;
import scala.collection.immutable.IndexedSeq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * A walk over everything that a plan reads: its children, its subqueries, and the inner queries of
 * a command. It leaves tables that a statement writes as they are.
 */
public final class PlanWalk {
  /** Answers what a plan becomes, or null where its parts are looked at. */
  private final UnaryOperator<LogicalPlan> each;

  /** A walk that does the same to each node, from the top. */
  public PlanWalk(UnaryOperator<LogicalPlan> each) {
    this.each = each;
  }

  /** Walks over a plan; answers the plan that it becomes. */
  public LogicalPlan over(LogicalPlan plan) {
    LogicalPlan made = each.apply(plan);
    return made != null ? made : subqueries(inner(children(plan)));
  }

  private LogicalPlan children(LogicalPlan plan) {
    LogicalPlan written = written(plan);
    List<LogicalPlan> made = new ArrayList<>();
    boolean changed = false;
    for (LogicalPlan child : CollectionConverters.asJava(plan.children())) {
      LogicalPlan other = child == written ? child : over(child);
      changed |= other != child;
      made.add(other);
    }
    if (!changed) {
      return plan;
    }
    IndexedSeq<LogicalPlan> others = CollectionConverters.asScala(made).toIndexedSeq();
    LogicalPlan found = plan.withNewChildren(others);
    if (found == plan && plan.isStreaming()) { // relations of two users, equal but for their tags
      found = plan.withNewChildrenInternal(others);
      found.copyTagsFrom(plan);
    }
    return found;
  }

  /** The table whose rows a statement changes, or null. */
  public static LogicalPlan written(LogicalPlan plan) {
    if (plan instanceof DeleteFromTable delete) {
      return delete.table();
    } else if (plan instanceof UpdateTable update) {
      return update.table();
    } else if (plan instanceof MergeIntoTable merge) {
      return merge.targetTable();
    }
    return plan instanceof V2WriteCommand write ? (LogicalPlan) write.table() : null;
  }

  private LogicalPlan inner(LogicalPlan plan) {
    List<?> kept = CollectionConverters.asJava(plan.innerChildren());
    if (kept.stream().noneMatch(LogicalPlan.class::isInstance)) {
      return plan;
    }
    Object[] parts = CollectionConverters.asJava(plan.productIterator().toSeq()).toArray();
    boolean changed = false;
    for (int i = 0; i < parts.length; i++) {
      if (parts[i] instanceof LogicalPlan query && kept.contains(query)) {
        parts[i] = over(query);
        changed |= parts[i] != query;
      }
    }
    return changed ? plan.makeCopy(parts) : plan;
  }

  private LogicalPlan subqueries(LogicalPlan plan) {
    return plan.transformExpressions(
        new AbstractPartialFunction<Expression, Expression>() {
          @Override
          public boolean isDefinedAt(Expression expression) {
            return expression instanceof SubqueryExpression;
          }

          @Override
          @SuppressWarnings({"unchecked", "rawtypes"}) // a query takes the place of one
          public <A extends Expression, B> B applyOrElse(A found, Function1<A, B> otherwise) {
            if (!(found instanceof SubqueryExpression query)) {
              return otherwise.apply(found);
            }
            LogicalPlan made = over(query.plan());
            return made == query.plan()
                ? (B) query
                : (B) ((PlanExpression) query).withNewPlan(made);
          }
        });
  }
}

package io.lockgate.spark.rules.joins;

import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The columns of each join that a resolved statement uses, so that a cache holds no others and
 * nobody needs rights to others.
 */
final class WantedColumns {
  private final Map<LogicalPlan, Set<ExprId>> wanted = new IdentityHashMap<>();

  private WantedColumns() {}

  /** Looks from the top of a plan, all of whose columns are wanted. */
  static WantedColumns of(LogicalPlan plan) {
    WantedColumns found = new WantedColumns();
    found.visit(plan, null);
    return found;
  }

  /** Tells whether something above a join uses a column of it. */
  boolean has(Join join, Attribute column) {
    Set<ExprId> used = wanted.get(join);
    return used == null || used.contains(column.exprId());
  }

  /** {@code used} is what the node above uses of a plan, or null for all. */
  private void visit(LogicalPlan plan, Set<ExprId> used) {
    if (plan instanceof Join) {
      wanted.put(plan, used);
    }
    Set<ExprId> below = below(plan, used);
    CollectionConverters.asJava(plan.children()).forEach(child -> visit(child, below));
    CollectionConverters.asJava(plan.subqueries()).forEach(query -> visit(query, null));
    for (Object inner : CollectionConverters.asJava(plan.innerChildren())) {
      if (inner instanceof LogicalPlan query) {
        visit(query, null);
      }
    }
  }

  private static Set<ExprId> below(LogicalPlan plan, Set<ExprId> used) {
    if (plan instanceof Project project) {
      return references(kept(CollectionConverters.asJava(project.projectList()), used));
    } else if (plan instanceof Aggregate aggregate) {
      Set<ExprId> found =
          references(kept(CollectionConverters.asJava(aggregate.aggregateExpressions()), used));
      found.addAll(references(CollectionConverters.asJava(aggregate.groupingExpressions())));
      return found;
    } else if (used == null || !handsOn(plan)) {
      return null;
    }
    Set<ExprId> found = references(CollectionConverters.asJava(plan.expressions()));
    found.addAll(used);
    return found;
  }

  /** Tells whether a node hands a column on, and uses others by its expressions alone. */
  private static boolean handsOn(LogicalPlan plan) {
    return plan instanceof SubqueryAlias
        || plan instanceof Filter
        || plan instanceof Join
        || plan instanceof Sort
        || plan instanceof Window
        || plan instanceof GlobalLimit
        || plan instanceof LocalLimit;
  }

  private static List<NamedExpression> kept(List<NamedExpression> given, Set<ExprId> used) {
    return given.stream().filter(each -> used == null || used.contains(each.exprId())).toList();
  }

  private static Set<ExprId> references(List<?> expressions) {
    Set<ExprId> found = new HashSet<>();
    for (Object each : expressions) {
      CollectionConverters.asJava(((Expression) each).references().toSeq())
          .forEach(column -> found.add(column.exprId()));
    }
    return found;
  }
}

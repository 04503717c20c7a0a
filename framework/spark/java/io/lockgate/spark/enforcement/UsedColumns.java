package io.lockgate.spark.enforcement;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.BiConsumer;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.InSubquery;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.ListQuery;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The columns of one relation that a statement uses, and the constants to which it limits columns.
 *
 * <p>A column that is compared with constants alone, directly above its relation, limits rows and
 * counts as no use: the rows stand for it.
 */
record UsedColumns(Set<String> columns, Map<String, Set<Object>> rows) {
  ObjectNode json() {
    ObjectNode message = Bridge.object();
    columns.forEach(message.putArray("columns")::add);
    ObjectNode limits = message.putObject("rows");
    rows.forEach((name, values) -> limits.set(name, Bridge.JSON.valueToTree(values)));
    return message;
  }

  /**
   * A walk over an optimized plan, whose relations are below barriers.
   *
   * @param byResults whether only columns count that results come from, and those that are compared
   *     with columns
   */
  record Walk(BiConsumer<ObjectNode, UsedColumns> found, boolean byResults) {
    void over(LogicalPlan plan) {
      visit(plan, byResults ? idsOf(plan) : null);
    }

    /** {@code wanted}: what the node above uses; null for all that the plan gives. */
    private void visit(LogicalPlan plan, Set<ExprId> wanted) {
      if (plan instanceof Barrier barrier) {
        note(barrier, List.of(), wanted);
      } else if (plan instanceof Filter filter && filter.child() instanceof Barrier barrier) {
        note(barrier, conjuncts(filter.condition(), new ArrayList<>()), wanted);
      } else if (byResults) {
        CollectionConverters.asJava(plan.children())
            .forEach(child -> visit(child, below(plan, child, wanted)));
      } else {
        boolean picks = plan instanceof Project || plan instanceof Aggregate;
        Set<ExprId> below = picks ? ids(plan.expressions()) : null;
        CollectionConverters.asJava(plan.children()).forEach(child -> visit(child, below));
      }
      boolean decides = plan instanceof Filter || plan instanceof Join || plan instanceof Sort;
      CollectionConverters.asJava(plan.expressions()).forEach(each -> subqueries(each, decides));
    }

    /** {@code decides}: the expression chooses or orders rows and is no result itself. */
    private void subqueries(Expression found, boolean decides) {
      if (found instanceof PlanExpression<?> query && query.plan() instanceof LogicalPlan plan) {
        visit(plan, byResults ? wantedOf(query, plan, decides) : null);
      }
      CollectionConverters.asJava(found.children()).forEach(each -> subqueries(each, decides));
    }

    /** The columns of a subquery that are results, or are compared with columns outside of it. */
    private static Set<ExprId> wantedOf(
        PlanExpression<?> query, LogicalPlan plan, boolean decides) {
      Set<ExprId> found = new HashSet<>();
      CollectionConverters.asJava(query.children()).forEach(each -> compared(each, found));
      if (!decides || query instanceof ListQuery) {
        found.addAll(idsOf(plan));
      }
      return found;
    }

    /** The columns of a child that the wanted ones of its parent come from; all in doubt. */
    private static Set<ExprId> below(LogicalPlan plan, LogicalPlan child, Set<ExprId> wanted) {
      if (plan instanceof Project project) {
        return sources(project.projectList(), wanted);
      } else if (plan instanceof Aggregate aggregate) {
        return sources(aggregate.aggregateExpressions(), wanted);
      } else if (plan instanceof Filter || plan instanceof Join) {
        Set<ExprId> both = new HashSet<>(wanted);
        CollectionConverters.asJava(plan.expressions()).forEach(each -> compared(each, both));
        return both;
      } else if (plan instanceof Union) {
        Set<ExprId> found = new HashSet<>();
        for (int i = 0; i < child.output().size(); i++) {
          if (wanted.contains(plan.output().apply(i).exprId())) {
            found.add(child.output().apply(i).exprId());
          }
        }
        return found;
      }
      return plan.output().equals(child.output()) ? wanted : idsOf(child);
    }

    private static Set<ExprId> sources(Seq<NamedExpression> expressions, Set<ExprId> wanted) {
      Set<ExprId> found = new HashSet<>();
      for (NamedExpression each : CollectionConverters.asJava(expressions)) {
        if (wanted.contains(each.exprId())) {
          found.addAll(references((Expression) each));
        }
      }
      return found;
    }

    /** Adds the columns that a condition compares with columns for equality. */
    private static void compared(Expression condition, Set<ExprId> found) {
      if (condition instanceof EqualTo equal
          && equal.left() instanceof Attribute
          && equal.right() instanceof Attribute) {
        found.addAll(references(equal));
      } else if (condition instanceof InSubquery in) {
        found.addAll(ids(in.values()));
      }
      CollectionConverters.asJava(condition.children()).forEach(each -> compared(each, found));
    }

    private void note(Barrier barrier, List<Expression> conditions, Set<ExprId> wanted) {
      Map<ExprId, String> names = new LinkedHashMap<>();
      Relations.output(barrier).forEach(column -> names.put(column.exprId(), column.name()));
      Set<ExprId> used = new HashSet<>(wanted == null ? names.keySet() : wanted);
      Map<ExprId, Set<Object>> limits = new LinkedHashMap<>();
      List<Expression> others = new ArrayList<>();
      for (Expression each : conditions) {
        Map.Entry<ExprId, Set<Object>> limit = limit(each);
        if (limit == null) {
          others.add(each);
        } else {
          limits.merge(limit.getKey(), limit.getValue(), Walk::both);
        }
      }
      others.removeIf(each -> each instanceof IsNotNull some && isLimited(some.child(), limits));
      if (byResults) {
        others.forEach(each -> compared(each, used));
      } else {
        others.forEach(each -> used.addAll(references(each)));
      }
      Set<String> columns = new TreeSet<>();
      names.forEach((id, name) -> columns.addAll(used.contains(id) ? Set.of(name) : Set.of()));
      Map<String, Set<Object>> rows = new LinkedHashMap<>();
      limits.forEach((id, values) -> rows.put(names.get(id), values));
      found.accept(barrier.guarded().relation(), new UsedColumns(columns, rows));
    }

    private static boolean isLimited(Expression value, Map<ExprId, Set<Object>> limits) {
      return value instanceof Attribute column && limits.containsKey(column.exprId());
    }

    private static Set<Object> both(Set<Object> left, Set<Object> right) {
      Set<Object> common = new LinkedHashSet<>(left);
      common.retainAll(right);
      // No row meets both; a point has one constant at least.
      return common.isEmpty() ? left : common;
    }
  }

  private static List<Expression> conjuncts(Expression condition, List<Expression> found) {
    if (condition instanceof And and) {
      conjuncts(and.left(), found);
      conjuncts(and.right(), found);
    } else {
      found.add(condition);
    }
    return found;
  }

  /** The column that a condition limits to constants, and these; null for any other condition. */
  private static Map.Entry<ExprId, Set<Object>> limit(Expression condition) {
    if (condition instanceof EqualTo equal) {
      return equal.left() instanceof Attribute
          ? limited(equal.left(), List.of(equal.right()))
          : limited(equal.right(), List.of(equal.left()));
    } else if (condition instanceof In in) {
      return limited(in.value(), CollectionConverters.asJava(in.list()));
    } else if (condition instanceof InSet in) {
      return limited(in.child(), in.child().dataType(), asJava(in.hset()));
    } else if (condition instanceof Or or) {
      Map.Entry<ExprId, Set<Object>> left = limit(or.left());
      Map.Entry<ExprId, Set<Object>> right = limit(or.right());
      if (left != null && right != null && left.getKey().equals(right.getKey())) {
        Set<Object> all = new LinkedHashSet<>(left.getValue());
        all.addAll(right.getValue());
        return Map.entry(left.getKey(), all);
      }
    }
    return null;
  }

  private static Map.Entry<ExprId, Set<Object>> limited(
      Expression column, List<Expression> literals) {
    List<Object> values = new ArrayList<>();
    for (Expression each : literals) {
      values.add(each instanceof Literal literal ? literal.value() : null);
    }
    return limited(column, column.dataType(), values);
  }

  private static Map.Entry<ExprId, Set<Object>> limited(
      Expression column, DataType type, Iterable<?> values) {
    Set<Object> constants = new LinkedHashSet<>();
    values.forEach(each -> constants.add(constant(each, type)));
    boolean isLimit = column instanceof Attribute && !constants.contains(null);
    return isLimit ? Map.entry(((Attribute) column).exprId(), constants) : null;
  }

  /** The constant as a point has it; null for one of another type. */
  private static Object constant(Object value, DataType type) {
    if (value instanceof UTF8String text && type instanceof StringType) {
      return text.toString();
    } else if (value instanceof Boolean) {
      return value;
    }
    return value instanceof Number number && type instanceof IntegralType
        ? (Object) number.longValue()
        : null;
  }

  private static Set<ExprId> idsOf(LogicalPlan plan) {
    Set<ExprId> found = new HashSet<>();
    Relations.output(plan).forEach(column -> found.add(column.exprId()));
    return found;
  }

  private static Set<ExprId> ids(Seq<Expression> expressions) {
    Set<ExprId> found = new HashSet<>();
    CollectionConverters.asJava(expressions).forEach(each -> found.addAll(references(each)));
    return found;
  }

  private static Set<ExprId> references(Expression expression) {
    Set<ExprId> found = new HashSet<>();
    CollectionConverters.asJava(expression.references().toSeq())
        .forEach(column -> found.add(column.exprId()));
    return found;
  }

  private static Iterable<?> asJava(scala.collection.immutable.Set<Object> values) {
    return CollectionConverters.asJava(values);
  }
}

package io.lockgate.spark.governance;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Askers;
import io.lockgate.spark.bridge.Bridge;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.IdentityHashMap;
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
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The needs of a statement: the columns and rows of each relation that it uses, and its nodes.
 *
 * <p>The statement is analysed and optimized with a barrier above every relation, under which every
 * column is marked as one that may not be used. What is left when its scans would be planned is
 * what the statement uses. Nothing is read, and nobody is asked about rights.
 */
public final class Needs {
  private static final ThreadLocal<Needs> ACTIVE = new ThreadLocal<>();

  private static final UsedColumns NOTHING = new UsedColumns(Set.of(), Map.of());

  private final Map<ObjectNode, List<UsedColumns>> used = new IdentityHashMap<>();
  private final List<ObjectNode> relations = new ArrayList<>();
  private final ArrayNode nodes = Bridge.JSON.createArrayNode();

  private Needs() {}

  /** Ends the optimizer once all that tells is done. */
  private static final class Done extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Done() {
      super(null, null, false, false);
    }
  }

  /** The needs of a statement, as the request of {@code governance.check} without its user. */
  public static String of(SparkSession spark, String sql) throws ParseException {
    return Askers.within(spark, () -> collected(spark, sql));
  }

  private static String collected(SparkSession spark, String sql) throws ParseException {
    Needs needs = new Needs();
    LogicalPlan parsed = spark.sessionState().sqlParser().parsePlan(sql);
    ACTIVE.set(needs);
    try {
      var execution = spark.sessionState().executePlan(parsed, CommandExecutionMode.SKIP());
      try {
        execution.optimizedPlan();
      } catch (Done e) {
        // all is known
      }
    } finally {
      ACTIVE.remove();
    }
    return needs.json().toString();
  }

  /** Tells whether this thread analyses a statement only to know its needs. */
  public static boolean isCollecting() {
    return active() != null;
  }

  /** The needs that this thread collects, or null. */
  static Needs active() {
    return ACTIVE.get();
  }

  /** Notes the columns that an optimized plan uses, and ends the optimizer. */
  void end(LogicalPlan plan) {
    new UsedColumns.Walk(
            (relation, found) ->
                used.computeIfAbsent(relation, any -> new ArrayList<>()).add(found))
        .over(plan);
    throw new Done();
  }

  /** The plan with a barrier above every relation. */
  LogicalPlan marked(SparkSession session, LogicalPlan plan) {
    Guard guard = new Guard(session, "");
    Statements statements = new Statements(session);
    return new PlanWalk(each -> marked(guard, statements, each)).over(plan);
  }

  private LogicalPlan marked(Guard guard, Statements statements, LogicalPlan plan) {
    if (plan instanceof Barrier) {
      return plan;
    }
    ObjectNode found = Relations.describe(plan);
    if (found == null) {
      if (!Relations.isOurs(plan)) {
        nodes.add(statements.describe(plan));
      }
      return null;
    }
    relations.add(found);
    return guard.over(plan, Relations.output(plan), found, allDenied(found));
  }

  private static ObjectNode allDenied(ObjectNode relation) {
    ObjectNode decided = Bridge.object().put("restricted", true).put("refused", false);
    ArrayNode denied = decided.putArray("denied");
    relation.get("columns").forEach(column -> denied.add(column.get("name").asText()));
    decided.putObject("masks");
    return decided.put("rights", "").putNull("filter").putNull("grant");
  }

  private ObjectNode json() {
    ObjectNode message = Bridge.object();
    ArrayNode every = message.putArray("used");
    for (ObjectNode relation : relations) {
      for (UsedColumns found : used.getOrDefault(relation, List.of(NOTHING))) {
        every.add(found.json().set("relation", relation));
      }
    }
    message.set("nodes", nodes);
    return message;
  }

  /**
   * The columns of one relation that a statement uses, and the constants to which it limits
   * columns.
   *
   * <p>A column that is compared with constants alone, directly above its relation, limits rows and
   * counts as no use: the rows stand for it.
   */
  private record UsedColumns(Set<String> columns, Map<String, Set<Object>> rows) {
    ObjectNode json() {
      ObjectNode message = Bridge.object();
      columns.forEach(message.putArray("columns")::add);
      ObjectNode limits = message.putObject("rows");
      rows.forEach((name, values) -> limits.set(name, Bridge.JSON.valueToTree(values)));
      return message;
    }

    /** A walk over an optimized plan, whose relations are below barriers. */
    record Walk(BiConsumer<ObjectNode, UsedColumns> found) {
      void over(LogicalPlan plan) {
        visit(plan, null);
      }

      /** {@code wanted}: what the node above uses; null for all that the plan gives. */
      private void visit(LogicalPlan plan, Set<ExprId> wanted) {
        if (plan instanceof Barrier barrier) {
          note(barrier, List.of(), wanted);
        } else if (plan instanceof Filter filter && filter.child() instanceof Barrier barrier) {
          note(barrier, conjuncts(filter.condition(), new ArrayList<>()), wanted);
        } else {
          boolean picks = plan instanceof Project || plan instanceof Aggregate;
          Set<ExprId> below = picks ? ids(plan.expressions()) : null;
          CollectionConverters.asJava(plan.children()).forEach(child -> visit(child, below));
        }
        CollectionConverters.asJava(plan.expressions()).forEach(this::subqueries);
      }

      private void subqueries(Expression found) {
        if (found instanceof PlanExpression<?> query && query.plan() instanceof LogicalPlan plan) {
          visit(plan, null);
        }
        CollectionConverters.asJava(found.children()).forEach(this::subqueries);
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
        others.forEach(each -> used.addAll(references(each)));
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
}

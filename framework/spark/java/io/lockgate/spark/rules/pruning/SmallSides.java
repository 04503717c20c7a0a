package io.lockgate.spark.rules.pruning;

import io.lockgate.spark.scan.LockgateScan;
import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.DynamicPruning;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftOuter$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.RightOuter$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Lets the keys of a join's small side skip files of the other side, also where the small side has
 * no filter and no side is broadcast.
 *
 * <p>Spark's own dynamic pruning requires a selective filter, or a broadcast that it can use again.
 * A list of a thousand indicators has neither. A small side here is local rows or a scan of a
 * snapshot, so reading it twice gives the same rows.
 */
public final class SmallSides extends Rule<LogicalPlan> {
  public static final SmallSides RULE = new SmallSides();

  // As many values as are sent one by one.
  private static final long MOST_ROWS = 20_000;
  // Fewer files are read sooner than the small side is.
  static final int FEW_FILES = 8;
  static final Set<JoinType> PRUNES_LEFT =
      Set.of(Inner$.MODULE$, LeftSemi$.MODULE$, RightOuter$.MODULE$);
  static final Set<JoinType> PRUNES_RIGHT =
      Set.of(Inner$.MODULE$, LeftSemi$.MODULE$, LeftOuter$.MODULE$);

  private SmallSides() {}

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return SQLConf.get().dynamicPartitionPruningEnabled() ? pruned(plan) : plan;
  }

  private static LogicalPlan pruned(LogicalPlan plan) {
    LogicalPlan changed = plan.mapChildren(SmallSides::pruned);
    return changed instanceof Join join ? pruned(join) : changed;
  }

  private static LogicalPlan pruned(Join join) {
    var keys = ExtractEquiJoinKeys$.MODULE$.unapply(join);
    if (keys.isEmpty()) {
      return join;
    }
    List<Expression> left = CollectionConverters.asJava(keys.get()._2());
    List<Expression> right = CollectionConverters.asJava(keys.get()._3());
    LogicalPlan newLeft = join.left();
    LogicalPlan newRight = join.right();
    if (PRUNES_LEFT.contains(join.joinType()) && isSmall(join.right())) {
      newLeft = pruned(join.left(), left, join.right(), right);
    } else if (PRUNES_RIGHT.contains(join.joinType()) && isSmall(join.left())) {
      newRight = pruned(join.right(), right, join.left(), left);
    }
    return newLeft == join.left() && newRight == join.right()
        ? join
        : join.withNewChildren(CollectionConverters.asScala(List.of(newLeft, newRight)).toSeq());
  }

  private static LogicalPlan pruned(
      LogicalPlan large, List<Expression> keys, LogicalPlan small, List<Expression> smallKeys) {
    LogicalPlan found = large;
    for (int i = 0; i < keys.size(); i++) {
      if (keys.get(i) instanceof AttributeReference key) {
        found = above(found, key, small, smallKeys, i, new ArrayList<>());
      }
    }
    return found;
  }

  /** The plan with a filter above the scan of the key's column, if one is worth it. */
  private static LogicalPlan above(
      LogicalPlan plan,
      Attribute key,
      LogicalPlan small,
      List<Expression> smallKeys,
      int number,
      List<Expression> conditions) {
    if (plan instanceof DataSourceV2ScanRelation relation) {
      return isWorthIt(relation, key) && conditions.stream().noneMatch(each -> prunes(each, key))
          ? new Filter(subquery(key, small, smallKeys, number), plan)
          : plan;
    } else if (plan instanceof Filter filter) {
      conditions.add(filter.condition());
    } else if (!(plan instanceof Project) && !(plan instanceof Join inner && isInner(inner))) {
      return plan;
    }
    return plan.mapChildren(
        child ->
            child.outputSet().contains(key)
                ? above(child, key, small, smallKeys, number, conditions)
                : child);
  }

  private static boolean isInner(Join join) {
    return join.joinType().equals(Inner$.MODULE$);
  }

  private static boolean prunes(Expression condition, Attribute key) {
    if (condition instanceof And and) {
      return prunes(and.left(), key) || prunes(and.right(), key);
    }
    return condition instanceof DynamicPruning && condition.references().contains(key);
  }

  private static boolean isWorthIt(DataSourceV2ScanRelation relation, Attribute key) {
    return relation.outputSet().contains(key)
        && relation.scan() instanceof LockgateScan scan
        && offers(scan, key)
        && scan.files() > FEW_FILES;
  }

  /** Tells whether single values of a column leave many files of a scan out. */
  static boolean offers(LockgateScan scan, Attribute key) {
    return Arrays.stream(scan.filterAttributes())
        .anyMatch(each -> Arrays.equals(each.fieldNames(), new String[] {key.name()}));
  }

  /** Tells whether a plan has few rows, the same ones whenever it runs. */
  static boolean isSmall(LogicalPlan plan) {
    return plan.deterministic() && rows(plan) <= MOST_ROWS;
  }

  private static long rows(LogicalPlan plan) {
    if (plan instanceof LocalRelation local) {
      return local.data().size();
    } else if (plan instanceof DataSourceV2ScanRelation relation
        && relation.scan() instanceof LockgateScan scan) {
      return scan.estimateStatistics().numRows().orElse(Long.MAX_VALUE);
    } else if ((plan instanceof Project || plan instanceof Filter || plan instanceof Aggregate)
        && CollectionConverters.asJava(plan.expressions()).stream()
            .noneMatch(SmallSides::hasSubquery)) {
      return rows(plan.children().apply(0));
    }
    return Long.MAX_VALUE;
  }

  private static boolean hasSubquery(Expression expression) {
    return expression instanceof SubqueryExpression
        || CollectionConverters.asJava(expression.children()).stream()
            .anyMatch(SmallSides::hasSubquery);
  }

  /** By reflection: later versions of Spark have one more optional part. */
  private static Expression subquery(
      Attribute key, LogicalPlan small, List<Expression> smallKeys, int number) {
    Constructor<?> made = DynamicPruningSubquery.class.getConstructors()[0];
    List<Object> parts =
        new ArrayList<>(
            List.of(
                key,
                small,
                CollectionConverters.asScala(smallKeys).toSeq(),
                CollectionConverters.asScala(List.<Object>of(number)).toSeq(),
                false,
                NamedExpression$.MODULE$.newExprId()));
    while (parts.size() < made.getParameterCount()) {
      parts.add(Option.empty());
    }
    try {
      return (Expression) Objects.requireNonNull(made.newInstance(parts.toArray()));
    } catch (ReflectiveOperationException failure) {
      throw new IllegalStateException("this version of Spark prunes in another way", failure);
    }
  }
}

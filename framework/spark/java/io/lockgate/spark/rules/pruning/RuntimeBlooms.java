package io.lockgate.spark.rules.pruning;

import io.lockgate.spark.scan.LockgateScan;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.optimizer.InjectRuntimeFilter$;
import org.apache.spark.sql.catalyst.optimizer.PushDownPredicates$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Gives a join that is not broadcast its Bloom filter back.
 *
 * <p>Where a scan offers columns to filter by at run time, Spark first plans dynamic pruning, which
 * takes the values from the join's broadcast, and then adds no Bloom filter for the same key. If no
 * side is broadcast, the pruning ends as {@code true} and the join has neither. Which side is
 * broadcast can't be seen when the scan is asked for its columns; here, after Spark's own rules, it
 * can.
 */
public final class RuntimeBlooms extends Rule<LogicalPlan> {
  public static final RuntimeBlooms RULE = new RuntimeBlooms();
  private static final InjectRuntimeFilter$ INJECT = InjectRuntimeFilter$.MODULE$;

  private RuntimeBlooms() {}

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (!SQLConf.get().runtimeFilterBloomFilterEnabled()) {
      return plan;
    }
    LogicalPlan without = without(plan, broadcasts(plan, new ArrayList<>()));
    return without == plan ? plan : PushDownPredicates$.MODULE$.apply(INJECT.apply(without));
  }

  /** The columns of the sides of joins that Spark will broadcast, by their sizes or hints. */
  private static List<AttributeSet> broadcasts(LogicalPlan plan, List<AttributeSet> found) {
    if (plan instanceof Join join) {
      JoinHint hint = join.hint();
      if (INJECT.hintToBroadcastLeft(hint)
          || INJECT.canBroadcastBySize(join.left(), SQLConf.get())) {
        found.add(join.left().outputSet());
      }
      if (INJECT.hintToBroadcastRight(hint)
          || INJECT.canBroadcastBySize(join.right(), SQLConf.get())) {
        found.add(join.right().outputSet());
      }
    }
    CollectionConverters.asJava(plan.children()).forEach(child -> broadcasts(child, found));
    return found;
  }

  private static LogicalPlan without(LogicalPlan plan, List<AttributeSet> broadcasts) {
    List<LogicalPlan> children = new ArrayList<>();
    boolean same = true;
    for (LogicalPlan child : CollectionConverters.asJava(plan.children())) {
      LogicalPlan changed = without(child, broadcasts);
      same &= changed == child;
      children.add(changed);
    }
    LogicalPlan changed =
        same ? plan : plan.withNewChildren(CollectionConverters.asScala(children).toSeq());
    return changed instanceof Filter filter && reads(filter.child())
        ? kept(filter, broadcasts)
        : changed;
  }

  /** Tells whether a filter stands on a scan of ours; nothing is known of others. */
  private static boolean reads(LogicalPlan child) {
    return child instanceof DataSourceV2ScanRelation relation
            && relation.scan() instanceof LockgateScan
        || child instanceof Filter filter && reads(filter.child());
  }

  private static LogicalPlan kept(Filter filter, List<AttributeSet> broadcasts) {
    List<Expression> all =
        CollectionConverters.asJava(INJECT.splitConjunctivePredicates(filter.condition()));
    List<Expression> kept =
        all.stream().filter(condition -> !isVain(condition, broadcasts)).toList();
    if (kept.size() == all.size()) {
      return filter;
    }
    return kept.stream()
        .reduce(org.apache.spark.sql.catalyst.expressions.And::new)
        .<LogicalPlan>map(condition -> new Filter(condition, filter.child()))
        .orElse(filter.child());
  }

  /** Tells whether a condition is dynamic pruning that needs a broadcast where there is none. */
  private static boolean isVain(Expression condition, List<AttributeSet> broadcasts) {
    return condition instanceof DynamicPruningSubquery pruning
        && pruning.onlyInBroadcast()
        && !INJECT.canBroadcastBySize(pruning.buildQuery(), SQLConf.get())
        && broadcasts.stream().noneMatch(side -> holds(side, pruning));
  }

  /** Tells whether the values that a dynamic pruning waits for are of this side of a join. */
  private static boolean holds(AttributeSet side, DynamicPruningSubquery pruning) {
    return CollectionConverters.asJava(pruning.buildKeys()).stream()
        .allMatch(key -> key.references().subsetOf(side));
  }
}

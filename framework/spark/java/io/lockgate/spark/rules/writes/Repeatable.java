package io.lockgate.spark.rules.writes;

import io.lockgate.spark.enforcement.Barrier;
import io.lockgate.spark.scan.LoadedTable;
import io.lockgate.spark.scan.LockgateScan;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.Distinct;
import org.apache.spark.sql.catalyst.plans.logical.Except;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.Intersect;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionByExpression;
import org.apache.spark.sql.catalyst.plans.logical.ResolvedHint;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.DataTypes;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Which plans give the same rows each time that they are read: deterministic ones over constants
 * and snapshots of tables.
 *
 * <p>A list of nodes that are allowed. Limits, samples and windows are none of them: which rows
 * they take may depend on the order in which tasks end.
 */
final class Repeatable {
  private static final Set<Class<?>> NODES =
      Set.of(
          Aggregate.class,
          Barrier.class,
          Distinct.class,
          Except.class,
          Expand.class,
          Filter.class,
          Generate.class,
          Intersect.class,
          Join.class,
          LocalRelation.class,
          OneRowRelation.class,
          Project.class,
          Range.class,
          Repartition.class,
          RepartitionByExpression.class,
          ResolvedHint.class,
          Sort.class,
          SubqueryAlias.class,
          Union.class,
          View.class);

  private final Map<Long, LogicalPlan> common;

  /** {@code common} are the definitions of WITH, by their ids. */
  Repeatable(Map<Long, LogicalPlan> common) {
    this.common = common;
  }

  boolean is(LogicalPlan plan) {
    if (plan instanceof ReadOnce) {
      return true;
    } else if (plan instanceof DataSourceV2Relation relation) {
      return relation.table() instanceof LoadedTable;
    } else if (plan instanceof DataSourceV2ScanRelation relation) {
      return relation.scan() instanceof LockgateScan;
    } else if (plan instanceof CTERelationRef reference) {
      LogicalPlan definition = common.get(reference.cteId());
      return definition != null && is(definition);
    }
    return NODES.contains(plan.getClass())
        && CollectionConverters.asJava(plan.expressions()).stream().allMatch(this::is)
        && CollectionConverters.asJava(plan.children()).stream().allMatch(this::is);
  }

  private boolean is(Expression expression) {
    return expression.deterministic()
        && !(expression instanceof UserDefinedExpression)
        && !(expression instanceof AggregateFunction function && addsFloats(function))
        && (!(expression instanceof PlanExpression<?> query)
            || query.plan() instanceof LogicalPlan plan && is(plan))
        && CollectionConverters.asJava(expression.children()).stream().allMatch(this::is);
  }

  /** Sums of floating point numbers differ by the order of the rows. */
  private static boolean addsFloats(AggregateFunction function) {
    return !(function instanceof Count || function instanceof Min || function instanceof Max)
        && CollectionConverters.asJava(function.children()).stream()
            .map(Expression::dataType)
            .anyMatch(
                each -> each.equals(DataTypes.FloatType) || each.equals(DataTypes.DoubleType));
  }
}

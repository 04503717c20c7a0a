package io.lockgate.spark.rules.pruning;

import io.lockgate.spark.scan.LockgateScan;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.BloomFilterMightContain;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.optimizer.InjectRuntimeFilter$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ExternalRDD;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.Function1;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Takes filters off scans whose values Spark would find by a reading of their own, of a side of a
 * join that may answer differently then: rows of a program, tables of other databases, {@code
 * rand()}. A row that only the join's reading has would find no partner.
 *
 * <p>Values that come from the join's own broadcast stay, and so do those of files, which Spark
 * lists once a statement.
 */
public final class ChangingSides extends Rule<LogicalPlan> {
  public static final ChangingSides RULE = new ChangingSides();

  private ChangingSides() {}

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.transformDown(new Filters());
  }

  private static boolean isOfChangingSide(Expression condition) {
    if (condition instanceof DynamicPruningSubquery pruning) {
      return !pruning.onlyInBroadcast() && changes(pruning.buildQuery());
    }
    return condition instanceof BloomFilterMightContain bloom
        && bloom.bloomFilterExpression() instanceof ScalarSubquery query
        && changes(query.plan());
  }

  private static boolean changes(LogicalPlan plan) {
    return !plan.deterministic()
        || plan.exists(
            each ->
                each instanceof LogicalRDD
                    || each instanceof ExternalRDD<?>
                    || each instanceof LogicalRelation relation
                        && !(relation.relation() instanceof HadoopFsRelation));
  }

  private static boolean standsOnScan(Filter filter) {
    return filter.child() instanceof DataSourceV2ScanRelation relation
            && relation.scan() instanceof LockgateScan
        || filter.child() instanceof Filter below && standsOnScan(below);
  }

  private static LogicalPlan without(Filter filter) {
    List<Expression> all =
        CollectionConverters.asJava(
            InjectRuntimeFilter$.MODULE$.splitConjunctivePredicates(filter.condition()));
    List<Expression> kept = all.stream().filter(each -> !isOfChangingSide(each)).toList();
    return kept.size() == all.size()
        ? filter
        : kept.stream()
            .reduce(And::new)
            .<LogicalPlan>map(condition -> new Filter(condition, filter.child()))
            .orElse(filter.child());
  }

  private static final class Filters extends AbstractPartialFunction<LogicalPlan, LogicalPlan> {
    @Override
    public boolean isDefinedAt(LogicalPlan plan) {
      return plan instanceof Filter filter && standsOnScan(filter);
    }

    @Override
    @SuppressWarnings("unchecked") // a plan takes the place of one
    public <A extends LogicalPlan, B> B applyOrElse(A plan, Function1<A, B> otherwise) {
      return plan instanceof Filter filter && standsOnScan(filter)
          ? (B) without(filter)
          : otherwise.apply(plan);
    }
  }
}

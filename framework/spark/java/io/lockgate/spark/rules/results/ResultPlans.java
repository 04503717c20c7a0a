package io.lockgate.spark.rules.results;

import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ReturnAnswer;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Plans queries whose rows are kept, or are to be kept. */
public final class ResultPlans extends SparkStrategy {
  /** Keeps nothing, so that all sessions share it. */
  public static final ResultPlans STRATEGY = new ResultPlans();

  private ResultPlans() {}

  @Override
  public Seq<SparkPlan> apply(LogicalPlan plan) {
    return CollectionConverters.asScala(planned(plan)).toSeq();
  }

  private List<SparkPlan> planned(LogicalPlan plan) {
    if (plan instanceof CachedResult result) {
      return List.of(new CachedResultExec(result.output(), result.kept()));
    } else if (plan instanceof ReturnAnswer answer
        && answer.child() instanceof ResultToKeep result) {
      // The answer of the query itself, so that its limits are planned as those of any other.
      SparkPlan inner = planLater(new ReturnAnswer(result.child()));
      return List.of(new ResultToKeepExec(inner, result.key(), result.most()));
    } else if (plan instanceof ResultToKeep result) {
      return List.of(planLater(result.child())); // a part of another plan, whose rows go elsewhere
    }
    return List.of();
  }
}

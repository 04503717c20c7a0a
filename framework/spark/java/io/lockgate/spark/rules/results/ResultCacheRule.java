package io.lockgate.spark.rules.results;

import java.util.Optional;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;

/**
 * Answers a query by the rows of an equal one that has run, in a session with {@code
 * spark.lockgate.result.cache}.
 *
 * <p>The last of all optimizer rules: its scans are authorized and planned, so that a user who has
 * lost a right gets the usual error and not the rows.
 */
public final class ResultCacheRule extends Rule<LogicalPlan> {
  /** Keeps nothing itself, so that all sessions share it. */
  public static final ResultCacheRule RULE = new ResultCacheRule();

  private ResultCacheRule() {}

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof CachedResult || plan instanceof ResultToKeep || !ResultSettings.isOn()) {
      return plan;
    }
    Optional<ResultKey> key = ResultKey.of(plan);
    if (key.isEmpty()) {
      return plan;
    }
    long most = ResultSettings.size();
    return Results.SHARED
        .find(key.get())
        .<LogicalPlan>map(kept -> new CachedResult(plan.output(), kept))
        .orElseGet(() -> new ResultToKeep(plan, key.get(), most));
  }

  /** Does work that plans queries to describe them: as if no result was kept. */
  public static <T> T without(Supplier<T> work) {
    ResultSettings.describe(true);
    try {
      return work.get();
    } finally {
      ResultSettings.describe(false);
    }
  }
}

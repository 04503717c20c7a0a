package io.lockgate.spark.rules;

import io.lockgate.spark.rules.pruning.ChangingSides;
import io.lockgate.spark.rules.pruning.LargeSides;
import io.lockgate.spark.rules.pruning.RuntimeBlooms;
import io.lockgate.spark.rules.pruning.SmallSides;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Adds to a session the rules that run after Spark's own, when scans exist.
 *
 * <p>Extensions have no place that late, only the session's experimental methods do. Those are a
 * user's to set as well, so this looks at every query that is analyzed. It changes no plan.
 */
public final class LateRules extends Rule<LogicalPlan> {
  private static final List<Rule<LogicalPlan>> RULES =
      List.of(
          Rewrites.RULE,
          RuntimeBlooms.RULE,
          ChangingSides.RULE,
          Untranslatable.UNWRAPPING,
          RemainingConditions.RULE,
          SmallSides.RULE,
          LargeSides.RULE);

  private final SparkSession session;
  private final List<Rule<LogicalPlan>> rules;

  /** Adds the rules to one session, and {@code last} after them. */
  public LateRules(SparkSession session, Rule<LogicalPlan> last) {
    this.session = session;
    this.rules = new ArrayList<>(RULES);
    this.rules.add(last);
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    Seq<Rule<LogicalPlan>> present = session.experimental().extraOptimizations();
    List<Rule<LogicalPlan>> all = new ArrayList<>(CollectionConverters.asJava(present));
    if (!all.containsAll(rules)) {
      rules.stream().filter(rule -> !all.contains(rule)).forEach(all::add);
      session.experimental().extraOptimizations_$eq(CollectionConverters.asScala(all).toSeq());
    }
    return plan;
  }
}

package io.lockgate.spark.rules;

import io.lockgate.spark.bridge.Bridge;
import java.util.Comparator;
import java.util.Set;
import java.util.TreeSet;
import org.apache.commons.text.similarity.LevenshteinDistance;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.command.ResetCommand;
import org.apache.spark.sql.execution.command.SetCommand;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Refuses statements of a session with a setting {@code spark.lockgate.*} that nobody reads: a
 * misspelt one would do nothing without a word.
 *
 * <p>A rule, for Spark shows the plan of a statement with the error of a check, and there the value
 * of {@code SET}, which may be a secret.
 */
public final class SettingNameCheck extends Rule<LogicalPlan> {
  public static final Rule<LogicalPlan> RULE = new SettingNameCheck();

  private static final String PREFIX = "spark.lockgate.";

  /** The settings that there are, as Python said; none before it is attached. */
  private static volatile Set<String> known = Set.of();

  private SettingNameCheck() {}

  /** Takes the settings that there are, a line each. */
  public static void know(String lines) {
    known = new TreeSet<>(Set.of(lines.split("\n")));
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof SetCommand set) {
      if (set.kv().isDefined() && set.kv().get()._2().isDefined()) {
        check(set.kv().get()._1());
      }
    } else if (!(plan instanceof ResetCommand)) {
      SQLConf.get().settings().keySet().forEach(SettingNameCheck::check);
    }
    return plan;
  }

  private static void check(String key) {
    if (key.startsWith(PREFIX) && !known.isEmpty() && !known.contains(key)) {
      LevenshteinDistance distance = LevenshteinDistance.getDefaultInstance();
      String nearest =
          known.stream().min(Comparator.comparing(each -> distance.apply(key, each))).orElseThrow();
      throw Bridge.failure(
          "OptionError: there is no setting "
              + key
              + "; did you mean "
              + nearest
              + "? RESET "
              + key
              + " takes it away");
    }
  }
}

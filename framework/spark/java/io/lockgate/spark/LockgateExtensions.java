package io.lockgate.spark;

import io.lockgate.spark.bridge.ConnectorVersion;
import io.lockgate.spark.enforcement.EarlyRights;
import io.lockgate.spark.enforcement.Govern;
import io.lockgate.spark.enforcement.LastCheck;
import io.lockgate.spark.enforcement.LocalFilesExec;
import io.lockgate.spark.enforcement.PathRights;
import io.lockgate.spark.enforcement.PushLeakproof;
import io.lockgate.spark.enforcement.RunRightsExec;
import io.lockgate.spark.enforcement.fences.ForeignCalls;
import io.lockgate.spark.enforcement.fences.ServerValues;
import io.lockgate.spark.enforcement.fences.ServerVariables;
import io.lockgate.spark.rules.DriverReads;
import io.lockgate.spark.rules.IncrementalQueries;
import io.lockgate.spark.rules.LateRules;
import io.lockgate.spark.rules.SettingNameCheck;
import io.lockgate.spark.rules.SubqueryErrors;
import io.lockgate.spark.rules.UnsupportedStatements;
import io.lockgate.spark.rules.Untranslatable;
import io.lockgate.spark.rules.changes.StateDifferences;
import io.lockgate.spark.rules.joins.LookupJoins;
import io.lockgate.spark.rules.joins.LookupMetrics;
import io.lockgate.spark.rules.joins.MarkLookups;
import io.lockgate.spark.rules.joins.MisplacedLookups;
import io.lockgate.spark.rules.parser.LookupParser;
import io.lockgate.spark.rules.results.ResultCacheRule;
import io.lockgate.spark.rules.results.ResultPlans;
import io.lockgate.spark.rules.streams.BatchValues;
import io.lockgate.spark.rules.streams.KindsOfRows;
import io.lockgate.spark.rules.writes.InsertClauses;
import io.lockgate.spark.rules.writes.ReadOnceExec;
import io.lockgate.spark.rules.writes.SingleReadings;
import java.util.Collections;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.classic.SparkSession;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * {@code spark.sql.extensions=io.lockgate.spark.LockgateExtensions}: the rules by which Spark plans
 * queries on tables of Lockgate.
 *
 * <p>Spark only warns where it does not find the class, and the session would plan without the
 * rules. So catalogs ask {@link #isIn} and refuse to work.
 */
public final class LockgateExtensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  static final String MISSING =
      "this Spark session runs without Lockgate's rules: start it with spark.sql.extensions="
          + LockgateExtensions.class.getName()
          + " (lockgate.configure(builder) sets it), before the first session of the process; one"
          + " that runs can't take it";

  /** State that a session shares with the sessions made of it; equal only if identical. */
  private static final Set<SparkSessionExtensions> EXTENDED =
      Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));

  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    ConnectorVersion.check();
    extensions.injectParser(
        (session, parser) ->
            ServerVariables.over((SparkSession) session, LookupParser.over(parser)));
    // Before any rule reads a setting.
    extensions.injectHintResolutionRule(session -> new ServerValues((SparkSession) session));
    extensions.injectHintResolutionRule(session -> SettingNameCheck.RULE);
    extensions.injectHintResolutionRule(session -> MarkLookups.RULE);
    extensions.injectHintResolutionRule(session -> new KindsOfRows((SparkSession) session));
    extensions.injectHintResolutionRule(session -> InsertClauses.HOLDING);
    // Before Spark's own rules open files.
    extensions.injectHintResolutionRule(session -> new PathRights((SparkSession) session));
    // Before Spark's own rules run a procedure.
    extensions.injectHintResolutionRule(session -> new ForeignCalls((SparkSession) session));
    // After all that looks for names.
    extensions.injectHintResolutionRule(session -> new EarlyRights.Holding((SparkSession) session));
    extensions.injectResolutionRule(session -> new EarlyRights.Resolving((SparkSession) session));
    extensions.injectResolutionRule(session -> InsertClauses.RESOLVING);
    extensions.injectPostHocResolutionRule(
        session -> new LateRules((SparkSession) session, ResultCacheRule.RULE));
    // Before anybody decides about rights: the rows of a lookup come by other ways than the
    // table's.
    extensions.injectPostHocResolutionRule(session -> new LookupJoins((SparkSession) session));
    extensions.injectPostHocResolutionRule(session -> LookupMetrics.RULE);
    extensions.injectPostHocResolutionRule(session -> StateDifferences.RULE);
    extensions.injectPostHocResolutionRule(session -> new Govern((SparkSession) session));
    extensions.injectPostHocResolutionRule(session -> BatchValues.RULE);
    // After all that looks at what a statement reads.
    extensions.injectPostHocResolutionRule(session -> SingleReadings.RULE);
    extensions.injectCheckRule(session -> MisplacedLookups.CHECK);
    extensions.injectCheckRule(session -> UnsupportedStatements.CHECK);
    extensions.injectOptimizerRule(session -> PushLeakproof.RULE);
    extensions.injectPreCBORule(session -> LastCheck.EARLY);
    extensions.injectOptimizerRule(session -> Untranslatable.WRAPPING);
    extensions.injectPlannerStrategy(session -> LastCheck.STRATEGY);
    extensions.injectPlannerStrategy(session -> ResultPlans.STRATEGY);
    extensions.injectPlannerStrategy(session -> DriverReads.STRATEGY);
    extensions.injectPlannerStrategy(session -> ReadOnceExec.STRATEGY);
    extensions.injectQueryStagePrepRule(session -> LocalFilesExec.RULE);
    extensions.injectColumnar(session -> LocalFilesExec.OF_PLANS);
    extensions.injectQueryStagePrepRule(session -> RunRightsExec.OF_STAGES);
    extensions.injectColumnar(session -> RunRightsExec.OF_PLANS);
    extensions.injectQueryStagePrepRule(session -> SubqueryErrors.RULE);
    extensions.injectColumnar(session -> SubqueryErrors.OF_PLANS);
    extensions.injectQueryStagePrepRule(session -> BatchValues.ANSWERS);
    extensions.injectColumnar(session -> BatchValues.ANSWERS_OF_PLANS);
    IncrementalQueries.functions().forEach(extensions::injectTableFunction);
    EXTENDED.add(extensions);
    return BoxedUnit.UNIT;
  }

  /** Tells whether a session plans its queries by these rules. */
  public static boolean isIn(SparkSession session) {
    return EXTENDED.contains(session.extensions());
  }
}

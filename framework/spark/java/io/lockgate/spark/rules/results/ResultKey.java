package io.lockgate.spark.rules.results;

import io.lockgate.spark.bridge.Users;
import io.lockgate.spark.catalog.LockgateTable;
import io.lockgate.spark.enforcement.Barrier;
import io.lockgate.spark.files.WordMatch;
import io.lockgate.spark.scan.LockgateScan;
import io.lockgate.spark.scan.ScanState;
import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TimeZone;
import org.apache.spark.sql.catalyst.expressions.ApplyFunctionExpression;
import org.apache.spark.sql.catalyst.expressions.CallMethodViaReflection;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.TryReflect;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Offset;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.catalyst.plans.logical.WindowGroupLimit;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import scala.Function1;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * All that the rows of a query depend on: its optimized plan with the state of each scan, every
 * setting of its session, the user, and what the process adds to the settings.
 *
 * <p>Snapshots never change, and the plan has what the user may see as barriers with the user's
 * rights. Times and users that a query names are constants in an optimized plan. So equal keys mean
 * equal rows.
 *
 * @param plan with scans replaced by their states, so that it holds no list of files
 */
record ResultKey(
    LogicalPlan plan, Map<String, String> settings, String user, String zone, String locale) {
  /** Larger ones are data rather than constants, and would be held with each result. */
  private static final int MOST_LOCAL_ROWS = 1000;

  /**
   * The nodes whose rows follow from their children's. A list of those that are allowed: what Spark
   * or a plugin adds is refused until somebody has looked at it.
   */
  private static final Set<Class<?>> EXACT =
      Set.of(
          Aggregate.class,
          Barrier.class,
          Expand.class,
          Filter.class,
          Generate.class,
          GlobalLimit.class,
          Join.class,
          LocalLimit.class,
          Offset.class,
          OneRowRelation.class,
          Project.class,
          Range.class,
          Sort.class,
          Union.class,
          Window.class,
          WindowGroupLimit.class);

  /** The key of a query, empty if its rows may differ from one run to the next. */
  static Optional<ResultKey> of(LogicalPlan plan) {
    boolean[] readsTables = {false};
    if (plan.isStreaming() || !isExact(plan, readsTables) || !readsTables[0]) {
      return Optional.empty();
    }
    SQLConf conf = SQLConf.get();
    return Optional.of(
        new ResultKey(
            plan.transformUpWithSubqueries(new States()).canonicalized(),
            Map.copyOf(CollectionConverters.asJava(conf.getAllConfs())),
            Users.current(),
            conf.sessionLocalTimeZone() + " " + TimeZone.getDefault().getID(),
            Locale.getDefault().toLanguageTag()));
  }

  private static boolean isExact(LogicalPlan plan, boolean[] readsTables) {
    if (plan instanceof DataSourceV2ScanRelation relation) {
      readsTables[0] = true;
      return isKeepable(relation);
    }
    boolean isExact =
        EXACT.contains(plan.getClass())
            || plan instanceof LocalRelation local && local.data().size() <= MOST_LOCAL_ROWS;
    return isExact
        && CollectionConverters.asJava(plan.expressions()).stream()
            .allMatch(each -> isExact(each, readsTables))
        && CollectionConverters.asJava(plan.children()).stream()
            .allMatch(child -> isExact(child, readsTables));
  }

  /** Tables that are shown in another way than they are stored have no state of their own. */
  private static boolean isKeepable(DataSourceV2ScanRelation relation) {
    return relation.relation().table() instanceof LockgateTable table
        && table.view() == null
        && table.id() != null
        && table.snapshotCommit() != null
        && relation.scan() instanceof LockgateScan scan
        && scan.isKeepable();
  }

  private static boolean isExact(Expression expression, boolean[] readsTables) {
    if (expression instanceof PlanExpression<?> query
        && !(query.plan() instanceof LogicalPlan plan && isExact(plan, readsTables))) {
      return false;
    }
    return expression.deterministic()
        && !isOfUsers(expression)
        && CollectionConverters.asJava(expression.children()).stream()
            .allMatch(child -> isExact(child, readsTables));
  }

  /** Tells whether users write the code, which may read anything and change under its name. */
  private static boolean isOfUsers(Expression expression) {
    boolean isMatch =
        expression instanceof ApplyFunctionExpression call
            && call.function() instanceof WordMatch.Bound;
    return expression instanceof UserDefinedExpression && !isMatch
        || expression instanceof CallMethodViaReflection
        || expression instanceof TryReflect;
  }

  /** Puts the state of a scan in the place of the scan. */
  private static final class States extends AbstractPartialFunction<LogicalPlan, LogicalPlan> {
    @Override
    public boolean isDefinedAt(LogicalPlan plan) {
      return plan instanceof DataSourceV2ScanRelation;
    }

    @Override
    @SuppressWarnings("unchecked") // a plan takes the place of one
    public <A extends LogicalPlan, B> B applyOrElse(A plan, Function1<A, B> otherwise) {
      return plan instanceof DataSourceV2ScanRelation relation
          ? (B) stateOf(relation)
          : otherwise.apply(plan);
    }

    /** A copy by arguments, since versions of Spark differ in their number. */
    private static LogicalPlan stateOf(DataSourceV2ScanRelation relation) {
      ScanState state = ((LockgateScan) relation.scan()).state();
      Object[] arguments =
          CollectionConverters.asJava(relation.productIterator().toSeq()).toArray();
      int scan = Arrays.asList(arguments).indexOf(relation.scan());
      arguments[scan] = state;
      return relation.makeCopy(arguments);
    }
  }

  /** Names neither literals nor settings, which may be secret. */
  @Override
  public String toString() {
    return "the key of a result";
  }
}

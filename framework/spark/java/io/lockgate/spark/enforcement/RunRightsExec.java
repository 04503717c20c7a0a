package io.lockgate.spark.enforcement;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.enforcement.parts.PassingExec;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.DataSourceScanExec;
import org.apache.spark.sql.execution.LocalTableScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanExecBase;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.IndexedSeq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A plan, or a scan of one, whose user is asked about again each time that it runs: Spark keeps
 * plans, and with them what their stages have computed.
 *
 * <p>Spark shows the stages of an adaptive plan to nobody above it, so the whole plan asks for all
 * that it reads.
 */
public final class RunRightsExec extends PassingExec {
  /** For the plans of statements. */
  public static final ColumnarRule OF_PLANS = new OfPlans();

  /** For the stages of adaptive plans: the whole plan asks. */
  public static final Rule<SparkPlan> OF_STAGES = new OfStages();

  private static final String OF_HIVE = "HiveTableScanExec";

  private static final TreeNodeTag<Boolean> IN_STAGE = new TreeNodeTag<>("lockgate.in-stage");

  // Only the driver asks.
  private final transient RunRights rights;
  private transient boolean hasRun;

  public RunRightsExec(SparkPlan child, RunRights rights) {
    super(child);
    this.rights = rights;
  }

  private static final class OfPlans extends ColumnarRule {
    @Override
    public Rule<SparkPlan> preColumnarTransitions() {
      return new Rule<>() {
        @Override
        public SparkPlan apply(SparkPlan plan) {
          boolean asks =
              Bridge.isGoverned() && !PolicySession.isInside() && !LocalFilesExec.isWithin();
          return !asks
              ? plan
              : plan instanceof AdaptiveSparkPlanExec all ? asking(all) : scans(plan);
        }
      };
    }
  }

  /** Marks scans of adaptive plans, whose stages Spark prepares again while they run. */
  private static final class OfStages extends Rule<SparkPlan> {
    @Override
    public SparkPlan apply(SparkPlan plan) {
      if (Bridge.isGoverned()) {
        CollectionConverters.asJava(plan.collectLeaves())
            .forEach(each -> each.setTagValue(IN_STAGE, true));
      }
      return plan;
    }
  }

  private static SparkPlan asking(AdaptiveSparkPlanExec all) {
    return asking(all, all.inputPlan().logicalLink().getOrElse(() -> null));
  }

  private static SparkPlan scans(SparkPlan plan) {
    if (plan instanceof RunRightsExec || plan.getTagValue(IN_STAGE).isDefined()) {
      return plan;
    } else if (plan instanceof InMemoryTableScanExec cached) {
      return asking(plan, cached.relation());
    } else if (plan instanceof DataSourceScanExec
        || plan instanceof DataSourceV2ScanExecBase
        || plan instanceof LocalTableScanExec
        || plan.getClass().getSimpleName().equals(OF_HIVE)) {
      return asking(plan, plan.logicalLink().getOrElse(() -> null));
    }
    return plan.mapChildren(RunRightsExec::scans);
  }

  private static SparkPlan asking(SparkPlan plan, LogicalPlan reading) {
    RunRights rights = reading == null ? null : RunRights.of(reading);
    return rights == null ? plan : new RunRightsExec(plan, rights);
  }

  /** Spark begins each action by this, also on a plan that it has kept from an earlier one. */
  @Override
  public void resetMetrics() {
    super.resetMetrics();
    if (hasRun) {
      ask();
    }
  }

  private void ask() {
    hasRun = true;
    GovernedRowsExec.active(
        session(),
        () -> {
          rights.ask();
          return null;
        });
  }

  private <T> T run(Supplier<T> work) {
    if (!hasRun) {
      ask();
    }
    return work.get();
  }

  @Override
  public RDD<InternalRow> doExecute() {
    ask();
    return child.execute();
  }

  @Override
  public RDD<ColumnarBatch> doExecuteColumnar() {
    ask();
    return child.executeColumnar();
  }

  @Override
  public InternalRow[] executeCollect() {
    return run(child::executeCollect);
  }

  @Override
  public Tuple2<Object, Iterator<InternalRow>> executeCollectIterator() {
    return run(child::executeCollectIterator);
  }

  @Override
  public Iterator<InternalRow> executeToIterator() {
    return run(child::executeToIterator);
  }

  @Override
  public InternalRow[] executeTake(int most) {
    return run(() -> child.executeTake(most));
  }

  @Override
  public InternalRow[] executeTail(int most) {
    return run(() -> child.executeTail(most));
  }

  @Override
  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
    return new RunRightsExec(children.apply(0), rights);
  }

  @Override
  public List<?> arguments() {
    return Arrays.asList(child, rights);
  }
}

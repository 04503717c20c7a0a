package io.lockgate.spark.enforcement;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.enforcement.parts.PassingExec;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.immutable.IndexedSeq;
import scala.reflect.ClassTag$;

/**
 * A scan of {@link LocalFiles}, checked when it is executed and by each task.
 *
 * <p>Spark keeps physical plans: a frame that is cached, or that EXPLAIN has shown, is not planned
 * again.
 */
public final class LocalFilesExec extends PassingExec {
  /** For the stages of adaptive plans. */
  public static final Rule<SparkPlan> RULE = new Checked();

  /** For all other plans. */
  public static final ColumnarRule OF_PLANS = new OfPlans();

  private static final ThreadLocal<Barrier> PLANNED = new ThreadLocal<>();

  // Only the driver asks.
  private final transient LocalFiles files;

  public LocalFilesExec(SparkPlan child, LocalFiles files) {
    super(child);
    this.files = files;
  }

  /** Plans what is below a barrier, whose relation is checked as it was hidden. */
  static <T> T within(Barrier barrier, Supplier<T> planning) {
    Barrier before = PLANNED.get();
    PLANNED.set(barrier);
    try {
      return planning.get();
    } finally {
      PLANNED.set(before);
    }
  }

  /** Tells whether what is planned is below a barrier, which asks for rights itself. */
  static boolean isWithin() {
    return PLANNED.get() != null;
  }

  private static final class Checked extends Rule<SparkPlan> {
    @Override
    public SparkPlan apply(SparkPlan plan) {
      return Bridge.isGoverned() ? checked(plan) : plan;
    }

    private SparkPlan checked(SparkPlan plan) {
      LocalFiles files = LocalFiles.of(plan, PLANNED.get());
      if (files != null) {
        return new LocalFilesExec(plan, files);
      }
      return plan instanceof LocalFilesExec ? plan : plan.mapChildren(this::checked);
    }
  }

  private static final class OfPlans extends ColumnarRule {
    @Override
    public Rule<SparkPlan> preColumnarTransitions() {
      return RULE;
    }
  }

  @Override
  public RDD<InternalRow> doExecute() {
    FilePlaces places = checked();
    return new CheckedFilesRdd<>(
        child.execute(), places, ClassTag$.MODULE$.apply(InternalRow.class));
  }

  @Override
  public RDD<ColumnarBatch> doExecuteColumnar() {
    FilePlaces places = checked();
    return new CheckedFilesRdd<>(
        child.executeColumnar(), places, ClassTag$.MODULE$.apply(ColumnarBatch.class));
  }

  private FilePlaces checked() {
    return GovernedRowsExec.active(session(), files::checked);
  }

  @Override
  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
    return new LocalFilesExec(children.apply(0), files);
  }

  @Override
  public List<?> arguments() {
    return Arrays.asList(child, files);
  }
}

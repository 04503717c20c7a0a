package io.lockgate.spark.enforcement;

import io.lockgate.spark.enforcement.parts.HiddenFailures;
import io.lockgate.spark.enforcement.parts.LeafRowsExec;
import java.util.List;
import java.util.function.Supplier;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.TransformExpression;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction0;

/**
 * The rows of a relation that a user sees, computed by a plan of its own.
 *
 * <p>That plan is no part of the statement's: what EXPLAIN, Spark's pages and exceptions show of
 * the statement, generated code and metrics too, holds no condition of a policy.
 */
public final class GovernedRowsExec extends LeafRowsExec {
  /** Before Spark 4.3, scans themselves had to know the keys of the other side of a join. */
  private static final String KEYED = "KeyedPartitioning";

  private final transient Barrier barrier;
  private transient SparkPlan inner;

  public GovernedRowsExec(Seq<Attribute> output, Barrier barrier) {
    super(output, barrier);
    this.barrier = barrier;
  }

  /** Spark begins each action by this, also on a plan that it has kept from an earlier one. */
  @Override
  public void resetMetrics() {
    super.resetMetrics();
    if (isPlanned()) {
      active(
          () -> {
            Govern.rightsHold(barrier);
            return null;
          });
    }
  }

  private synchronized boolean isPlanned() {
    return inner != null;
  }

  /** The plan of the relation, its row filter and its masks; made when the rows are wanted. */
  private synchronized SparkPlan inner() {
    if (inner == null) {
      inner =
          active(
              () -> {
                Govern.settingsSuit(session(), barrier.guarded());
                Govern.rightsHold(barrier);
                return HiddenFailures.hiding(
                    () ->
                        LocalFilesExec.within(
                            barrier, () -> barrier.planned(session(), isBucketed())));
              });
    }
    return inner;
  }

  /**
   * The buckets that the rows lie in, so that joins and aggregates by them move no rows. A value of
   * a partition is none: Spark would show it.
   */
  @Override
  public Partitioning outputPartitioning() {
    Partitioning unknown = super.outputPartitioning();
    Partitioning found = isBucketed() ? inner().outputPartitioning() : unknown;
    return found instanceof Expression keyed
            && KEYED.equals(keyed.getClass().getSimpleName())
            && CollectionConverters.asJava(keyed.children()).stream()
                .allMatch(TransformExpression.class::isInstance)
        ? found
        : unknown;
  }

  /** Tells whether the partitions of the relation are of known keys. */
  private boolean isBucketed() {
    return barrier
        .child()
        .exists(
            each ->
                each instanceof DataSourceV2ScanRelation scan
                    && scan.keyGroupedPartitioning().isDefined());
  }

  @Override
  public RDD<InternalRow> doExecute() {
    return active(() -> inner().execute())
        .mapPartitions(new HiddenFailures(), true, ClassTag$.MODULE$.apply(InternalRow.class));
  }

  /** Rows that the driver has read need no job. */
  private <T> T alone(Supplier<T> ofDriver, Supplier<T> otherwise) {
    boolean isRead = inner().children().isEmpty() && inner().expressions().isEmpty();
    return isRead ? active(() -> HiddenFailures.hiding(ofDriver)) : otherwise.get();
  }

  private <T> T active(Supplier<T> work) {
    return active(session(), work);
  }

  /** Does work in the session of a query: threads of a program's own have none. */
  static <T> T active(SparkSession session, Supplier<T> work) {
    return session.withActive(
        new AbstractFunction0<T>() {
          @Override
          public T apply() {
            return work.get();
          }
        });
  }

  @Override
  public InternalRow[] executeCollect() {
    return alone(() -> inner().executeCollect(), super::executeCollect);
  }

  @Override
  public Tuple2<Object, Iterator<InternalRow>> executeCollectIterator() {
    return alone(() -> inner().executeCollectIterator(), super::executeCollectIterator);
  }

  @Override
  public Iterator<InternalRow> executeToIterator() {
    return alone(() -> inner().executeToIterator(), super::executeToIterator);
  }

  @Override
  public InternalRow[] executeTake(int most) {
    return alone(() -> inner().executeTake(most), () -> super.executeTake(most));
  }

  @Override
  public InternalRow[] executeTail(int most) {
    return alone(() -> inner().executeTail(most), () -> super.executeTail(most));
  }

  @Override
  public Iterator<Object> stringArgs() {
    return CollectionConverters.asScala(
        List.<Object>of(output(), barrier.guarded().toString()).iterator());
  }

  /** The same rights over the same rows are the same, whatever ids their columns have. */
  @Override
  public SparkPlan doCanonicalize() {
    Barrier canonical = (Barrier) ((QueryPlan<?>) barrier).canonicalized();
    return new GovernedRowsExec(canonical.output(), canonical);
  }
}

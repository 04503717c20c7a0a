package io.lockgate.spark.governance;

import io.lockgate.spark.parts.HiddenFailures;
import io.lockgate.spark.parts.LeafRowsExec;
import java.util.List;
import java.util.function.Supplier;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.execution.QueryExecution$;
import org.apache.spark.sql.execution.SparkPlan;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;

/**
 * The rows of a relation that a user sees, computed by a plan of its own.
 *
 * <p>That plan is no part of the statement's: what EXPLAIN, Spark's pages and exceptions show of
 * the statement, generated code and metrics too, holds no condition of a policy.
 */
public final class GovernedRowsExec extends LeafRowsExec {
  private final transient Barrier barrier;
  private transient SparkPlan inner;

  public GovernedRowsExec(Seq<Attribute> output, Barrier barrier) {
    super(output, barrier);
    this.barrier = barrier;
  }

  /** The plan of the relation, its row filter and its masks; made when the rows are wanted. */
  private synchronized SparkPlan inner() {
    if (inner == null) {
      Govern.settingsSuit(session(), barrier.guarded());
      inner =
          HiddenFailures.hiding(
              () -> QueryExecution$.MODULE$.prepareExecutedPlan(session(), barrier.child()));
    }
    return inner;
  }

  @Override
  public RDD<InternalRow> doExecute() {
    return inner()
        .execute()
        .mapPartitions(new HiddenFailures(), true, ClassTag$.MODULE$.apply(InternalRow.class));
  }

  /** Rows that the driver has read need no job. */
  private <T> T alone(Supplier<T> ofDriver, Supplier<T> otherwise) {
    boolean isRead = inner().children().isEmpty() && inner().expressions().isEmpty();
    return isRead ? HiddenFailures.hiding(ofDriver) : otherwise.get();
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

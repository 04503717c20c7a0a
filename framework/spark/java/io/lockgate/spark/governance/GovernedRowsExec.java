package io.lockgate.spark.governance;

import java.util.List;
import java.util.function.Supplier;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.execution.LeafExecNode;
import org.apache.spark.sql.execution.QueryExecution$;
import org.apache.spark.sql.execution.SparkPlan;
import scala.Function1;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;

/**
 * The rows that a user sees of a relation, computed by a plan of its own.
 *
 * <p>That plan is no part of the statement's: what EXPLAIN, Spark's pages and exceptions show of
 * the statement, generated code and metrics too, holds no condition of a policy.
 *
 * <p>Spark copies nodes by their public constructor, whose arguments are the elements of the
 * product.
 */
public final class GovernedRowsExec extends SparkPlan implements LeafExecNode {
  private final Seq<Attribute> output;
  private final transient Barrier barrier;
  private transient SparkPlan inner;

  public GovernedRowsExec(Seq<Attribute> output, Barrier barrier) {
    this.output = output;
    this.barrier = barrier;
  }

  /** The plan of the relation, its row filter and its masks; made when the rows are wanted. */
  private synchronized SparkPlan inner() {
    if (inner == null) {
      inner =
          HiddenFailures.hiding(
              () -> QueryExecution$.MODULE$.prepareExecutedPlan(session(), barrier.child()));
    }
    return inner;
  }

  @Override
  public Seq<Attribute> output() {
    return output;
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
        List.<Object>of(output, barrier.guarded().toString()).iterator());
  }

  // --- what Scala would write itself ---

  @Override
  public Seq<SparkPlan> children() {
    return LeafExecNode.super.children();
  }

  @Override
  public SparkPlan mapChildren(Function1<SparkPlan, SparkPlan> change) {
    return this;
  }

  @Override
  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
    return this;
  }

  /** The same rights over the same rows are the same, whatever ids their columns have. */
  @Override
  public SparkPlan doCanonicalize() {
    Barrier canonical = (Barrier) ((QueryPlan<?>) barrier).canonicalized();
    return new GovernedRowsExec(canonical.output(), canonical);
  }

  @Override
  public AttributeSet producedAttributes() {
    return LeafExecNode.super.producedAttributes();
  }

  @Override
  public String verboseStringWithOperatorId() {
    return LeafExecNode.super.verboseStringWithOperatorId();
  }

  @Override
  public int productArity() {
    return 2;
  }

  @Override
  public Object productElement(int at) {
    return at == 0 ? output : barrier;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof GovernedRowsExec;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof GovernedRowsExec rows
        && rows.barrier.equals(barrier)
        && rows.output.equals(output);
  }

  @Override
  public int hashCode() {
    return 31 * output.hashCode() + barrier.hashCode();
  }
}

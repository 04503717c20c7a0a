package io.lockgate.spark.rules;

import io.lockgate.spark.bridge.Failure;
import io.lockgate.spark.enforcement.parts.NodeProduct;
import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.BaseSubqueryExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SubqueryExec;
import org.apache.spark.sql.execution.metric.SQLMetric;
import scala.Function1;
import scala.collection.Iterator;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A subquery of Spark's that throws errors of ours as they were thrown.
 *
 * <p>Spark copies nodes by their public constructor, whose arguments are the elements of the
 * product.
 */
public final class NamedSubqueryExec extends BaseSubqueryExec implements NodeProduct {
  private final SubqueryExec subquery;

  public NamedSubqueryExec(SubqueryExec subquery) {
    this.subquery = subquery;
  }

  @Override
  public InternalRow[] executeCollect() {
    try {
      return subquery.executeCollect();
    } catch (Exception wrapped) {
      throw Failure.within(wrapped);
    }
  }

  @Override
  public void doPrepare() {
    subquery.prepare();
  }

  @Override
  public RDD<InternalRow> doExecute() {
    throw new IllegalStateException("the rows of a subquery are collected");
  }

  @Override
  public String name() {
    return subquery.name();
  }

  @Override
  public SparkPlan child() {
    return subquery.child();
  }

  @Override
  public Map<String, SQLMetric> metrics() {
    return subquery.metrics();
  }

  /** The same as Spark's subquery, so that plans run one of them for all that are equal. */
  @Override
  public SparkPlan doCanonicalize() {
    return subquery.canonicalized();
  }

  @Override
  public String nodeName() {
    return subquery.nodeName();
  }

  @Override
  public Iterator<Object> stringArgs() {
    return subquery.stringArgs();
  }

  // --- what Scala would write itself ---

  @Override
  public Seq<SparkPlan> children() {
    return CollectionConverters.asScala(List.of(child())).toSeq();
  }

  @Override
  public SparkPlan mapChildren(Function1<SparkPlan, SparkPlan> change) {
    SparkPlan changed = change.apply(child());
    return changed.fastEquals(child()) ? this : withChild(changed);
  }

  @Override
  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
    return withChild(children.head());
  }

  private SparkPlan withChild(SparkPlan child) {
    return new NamedSubqueryExec(subquery.withNewChildInternal(child));
  }

  @Override
  public List<?> arguments() {
    return List.of(subquery);
  }

  @Override
  public boolean equals(Object other) {
    return isLike(other);
  }

  @Override
  public int hashCode() {
    return arguments().hashCode();
  }
}

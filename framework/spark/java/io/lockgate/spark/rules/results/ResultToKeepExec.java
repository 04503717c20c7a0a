package io.lockgate.spark.rules.results;

import io.lockgate.spark.enforcement.parts.NodeProduct;
import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.execution.SparkPlan;
import scala.collection.Iterator;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** A query whose rows are kept when the driver gets all of them. */
public final class ResultToKeepExec extends SparkPlan implements NodeProduct {
  private final SparkPlan child;
  // Only the driver keeps rows.
  private final transient ResultKey key;
  private final long most;

  public ResultToKeepExec(SparkPlan child, ResultKey key, Long most) {
    this.child = child;
    this.key = key;
    this.most = most;
  }

  @Override
  public InternalRow[] executeCollect() {
    InternalRow[] rows = child.executeCollect();
    Results.SHARED.keep(key, rows, most);
    return rows;
  }

  @Override
  public RDD<InternalRow> doExecute() {
    return child.execute();
  }

  @Override
  public Seq<Attribute> output() {
    return child.output();
  }

  @Override
  public Partitioning outputPartitioning() {
    return child.outputPartitioning();
  }

  @Override
  public Seq<SortOrder> outputOrdering() {
    return child.outputOrdering();
  }

  @Override
  public Seq<SparkPlan> children() {
    return CollectionConverters.asScala(List.of(child)).toSeq();
  }

  @Override
  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
    return new ResultToKeepExec(children.apply(0), key, most);
  }

  @Override
  public Iterator<Object> stringArgs() {
    return CollectionConverters.asScala(List.<Object>of().iterator());
  }

  @Override
  public List<?> arguments() {
    return java.util.Arrays.asList(child, key, most);
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

package io.lockgate.spark.rules.results;

import io.lockgate.spark.enforcement.parts.NodeProduct;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A query whose rows are to be kept once it has run. A node, so that the key survives when Spark
 * plans the rest of a running query again.
 */
public final class ResultToKeep extends LogicalPlan implements NodeProduct {
  private final LogicalPlan child;
  private final ResultKey key;
  private final long most;

  /** The rows of {@code child}, if they take {@code most} bytes. */
  public ResultToKeep(LogicalPlan child, ResultKey key, long most) {
    this.child = child;
    this.key = key;
    this.most = most;
  }

  LogicalPlan child() {
    return child;
  }

  ResultKey key() {
    return key;
  }

  long most() {
    return most;
  }

  @Override
  public Seq<Attribute> output() {
    return child.output();
  }

  @Override
  public Seq<LogicalPlan> children() {
    return CollectionConverters.asScala(List.of(child)).toSeq();
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return new ResultToKeep(children.apply(0), key, most);
  }

  @Override
  public String simpleString(int maxFields) {
    return "ResultToKeep";
  }

  @Override
  public List<?> arguments() {
    return List.of(child, key, most);
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

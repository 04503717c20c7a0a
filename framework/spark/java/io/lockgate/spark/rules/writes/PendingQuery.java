package io.lockgate.spark.rules.writes;

import io.lockgate.spark.enforcement.parts.NodeProduct;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The query of an INSERT until the table is known. It is never resolved, so Spark does not match
 * its columns with the table's before {@link InsertClauses} has looked at the statement.
 */
public final class PendingQuery extends LogicalPlan implements NodeProduct {
  private final LogicalPlan child;

  public PendingQuery(LogicalPlan child) {
    this.child = child;
  }

  LogicalPlan child() {
    return child;
  }

  @Override
  public boolean resolved() {
    return false;
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
    return new PendingQuery(children.apply(0));
  }

  @Override
  public List<?> arguments() {
    return List.of(child);
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

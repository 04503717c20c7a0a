package io.lockgate.spark.enforcement.parts;

import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** A node of a logical plan with the columns of its one child: what Scala would write itself. */
public abstract class OneChildPlan extends LogicalPlan implements NodeProduct {
  private final LogicalPlan child;

  protected OneChildPlan(LogicalPlan child) {
    this.child = child;
  }

  public final LogicalPlan child() {
    return child;
  }

  @Override
  public Seq<Attribute> output() {
    return child.output();
  }

  @Override
  public final Seq<LogicalPlan> children() {
    return CollectionConverters.asScala(List.of(child)).toSeq();
  }

  @Override
  public final boolean equals(Object other) {
    return isLike(other);
  }

  @Override
  public final int hashCode() {
    return arguments().hashCode();
  }
}

package io.lockgate.spark.enforcement.parts;

import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.execution.LeafExecNode;
import org.apache.spark.sql.execution.SparkPlan;
import scala.Function1;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/**
 * Rows of columns from one origin, as a leaf of a physical plan: what Scala would write itself.
 *
 * <p>Spark copies nodes by their public constructor, whose arguments are the elements of the
 * product: a subclass has one that takes the output and the origin.
 */
public abstract class LeafRowsExec extends SparkPlan implements LeafExecNode, NodeProduct {
  private final Seq<Attribute> output;
  // Only the driver knows where the rows come from.
  private final transient Object origin;

  protected LeafRowsExec(Seq<Attribute> output, Object origin) {
    this.output = output;
    this.origin = origin;
  }

  @Override
  public final Seq<Attribute> output() {
    return output;
  }

  @Override
  public final Seq<SparkPlan> children() {
    return LeafExecNode.super.children();
  }

  @Override
  public final SparkPlan mapChildren(Function1<SparkPlan, SparkPlan> change) {
    return this;
  }

  @Override
  public final SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
    return this;
  }

  @Override
  public final AttributeSet producedAttributes() {
    return LeafExecNode.super.producedAttributes();
  }

  @Override
  public final String verboseStringWithOperatorId() {
    return LeafExecNode.super.verboseStringWithOperatorId();
  }

  @Override
  public final List<?> arguments() {
    return Arrays.asList(output, origin);
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

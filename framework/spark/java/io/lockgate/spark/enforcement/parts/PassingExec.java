package io.lockgate.spark.enforcement.parts;

import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.execution.SparkPlan;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** A node of a physical plan with the rows of its one child, as they lie there. */
public abstract class PassingExec extends SparkPlan implements NodeProduct {
  protected final SparkPlan child;

  protected PassingExec(SparkPlan child) {
    this.child = child;
  }

  @Override
  public final boolean supportsColumnar() {
    return child.supportsColumnar();
  }

  @Override
  public final boolean supportsRowBased() {
    return child.supportsRowBased();
  }

  @Override
  public final Option<Seq<String>> vectorTypes() {
    return child.vectorTypes();
  }

  @Override
  public final Seq<Attribute> output() {
    return child.output();
  }

  @Override
  public final Partitioning outputPartitioning() {
    return child.outputPartitioning();
  }

  @Override
  public final Seq<SortOrder> outputOrdering() {
    return child.outputOrdering();
  }

  @Override
  public final Seq<SparkPlan> children() {
    return CollectionConverters.asScala(List.of(child)).toSeq();
  }

  @Override
  public final Iterator<Object> stringArgs() {
    return CollectionConverters.asScala(List.<Object>of().iterator());
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

package io.lockgate.spark.rules.writes;

import io.lockgate.spark.enforcement.parts.OneChildPlan;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.collection.immutable.IndexedSeq;

/**
 * Rows that a statement reads once, however often Spark puts them into its plan.
 *
 * <p>All copies of the node share one reading. Optimizer rules move nothing through a node that
 * they do not know, so each copy has the same columns; and for the rest of the plan its rows are
 * deterministic.
 */
public final class ReadOnce extends OneChildPlan {
  private final SingleReading reading;

  public ReadOnce(LogicalPlan child, SingleReading reading) {
    super(child);
    this.reading = reading;
  }

  SingleReading reading() {
    return reading;
  }

  @Override
  public boolean deterministic() {
    return true;
  }

  /** All columns, so that no copy loses one. */
  @Override
  public AttributeSet references() {
    return child().outputSet();
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return new ReadOnce(children.apply(0), reading);
  }

  @Override
  public String simpleString(int maxFields) {
    return "ReadOnce";
  }

  @Override
  public List<?> arguments() {
    return List.of(child(), reading);
  }
}

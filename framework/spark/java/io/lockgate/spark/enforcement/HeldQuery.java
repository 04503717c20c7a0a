package io.lockgate.spark.enforcement;

import io.lockgate.spark.enforcement.parts.OneChildPlan;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.collection.immutable.IndexedSeq;

/**
 * The query of a statement that writes a table, until {@link EarlyRights} has asked about the
 * table. It is never resolved, so Spark does not match its columns with the table's before.
 */
public final class HeldQuery extends OneChildPlan {
  public HeldQuery(LogicalPlan child) {
    super(child);
  }

  @Override
  public boolean resolved() {
    return false;
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return new HeldQuery(children.apply(0));
  }

  @Override
  public List<?> arguments() {
    return List.of(child());
  }
}

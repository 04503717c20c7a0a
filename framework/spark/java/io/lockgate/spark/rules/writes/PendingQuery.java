package io.lockgate.spark.rules.writes;

import io.lockgate.spark.enforcement.parts.OneChildPlan;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.collection.immutable.IndexedSeq;

/**
 * The query of an INSERT until the table is known. It is never resolved, so Spark does not match
 * its columns with the table's before {@link InsertClauses} has looked at the statement.
 */
public final class PendingQuery extends OneChildPlan {
  public PendingQuery(LogicalPlan child) {
    super(child);
  }

  @Override
  public boolean resolved() {
    return false;
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return new PendingQuery(children.apply(0));
  }

  @Override
  public List<?> arguments() {
    return List.of(child());
  }
}

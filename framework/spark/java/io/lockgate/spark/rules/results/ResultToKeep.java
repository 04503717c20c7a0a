package io.lockgate.spark.rules.results;

import io.lockgate.spark.enforcement.parts.OneChildPlan;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.collection.immutable.IndexedSeq;

/**
 * A query whose rows are to be kept once it has run. A node, so that the key survives when Spark
 * plans the rest of a running query again.
 */
public final class ResultToKeep extends OneChildPlan {
  private final ResultKey key;
  private final long most;

  /** The rows of {@code child}, if they take {@code most} bytes. */
  public ResultToKeep(LogicalPlan child, ResultKey key, long most) {
    super(child);
    this.key = key;
    this.most = most;
  }

  ResultKey key() {
    return key;
  }

  long most() {
    return most;
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
    return List.of(child(), key, most);
  }
}

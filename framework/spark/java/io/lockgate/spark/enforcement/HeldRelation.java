package io.lockgate.spark.enforcement;

import io.lockgate.spark.enforcement.parts.OneChildPlan;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.collection.immutable.IndexedSeq;

/**
 * A relation until {@link EarlyRights} has asked whether its reader may see it. It is never
 * resolved, so Spark compares no column with those of the relation before.
 */
public final class HeldRelation extends OneChildPlan {
  private final String name;

  /** Holds a relation; {@code name} is the name that it was looked up by, or null. */
  public HeldRelation(LogicalPlan child, String name) {
    super(child);
    this.name = name;
  }

  String name() {
    return name;
  }

  @Override
  public boolean resolved() {
    return false;
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return new HeldRelation(children.apply(0), name);
  }

  @Override
  public List<?> arguments() {
    return Arrays.asList(child(), name);
  }
}

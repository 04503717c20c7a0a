package io.lockgate.spark.enforcement;

import java.util.ArrayList;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.Function1;
import scala.runtime.BoxedUnit;

/** A node that prints itself alone, in the words of Spark before 4.1. */
abstract class HiddenTree extends LogicalPlan {
  abstract void print(
      int depth,
      ArrayList<Object> lastChildren,
      Function1<String, BoxedUnit> append,
      String prefix,
      int maxFields,
      int indent);

  @Override
  public void generateTreeString(
      int depth,
      ArrayList<Object> lastChildren,
      Function1<String, BoxedUnit> append,
      boolean verbose,
      String prefix,
      boolean addSuffix,
      int maxFields,
      boolean printNodeId,
      int indent) {
    print(depth, lastChildren, append, prefix, maxFields, indent);
  }
}

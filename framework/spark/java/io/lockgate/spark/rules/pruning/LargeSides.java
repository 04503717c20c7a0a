package io.lockgate.spark.rules.pruning;

import io.lockgate.spark.messages.JoinedScan;
import io.lockgate.spark.messages.PushedScan;
import io.lockgate.spark.scan.LockgateScan;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Names to a scan the scans that its rows must find partners in, where neither side of the join is
 * small. Python compares their indexes, and skips files without a common value.
 *
 * <p>Between a scan and the join are only filters, projections and inner joins: they keep rows as
 * they are, or drop them. The join itself stays, and the plan too.
 */
public final class LargeSides extends Rule<LogicalPlan> {
  public static final LargeSides RULE = new LargeSides();

  private LargeSides() {}

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (SQLConf.get().dynamicPartitionPruningEnabled()) {
      Map<LockgateScan, List<JoinedScan>> found = new IdentityHashMap<>();
      visit(plan, found);
      found.forEach((scan, joined) -> scan.requirePartners(joined));
    }
    return plan;
  }

  private static void visit(LogicalPlan plan, Map<LockgateScan, List<JoinedScan>> found) {
    if (plan instanceof Join join) {
      note(join, found);
    }
    CollectionConverters.asJava(plan.children()).forEach(child -> visit(child, found));
    CollectionConverters.asJava(plan.subqueries()).forEach(query -> visit(query, found));
  }

  private static void note(Join join, Map<LockgateScan, List<JoinedScan>> found) {
    var keys = ExtractEquiJoinKeys$.MODULE$.unapply(join);
    if (keys.isEmpty() || SmallSides.isSmall(join.left()) || SmallSides.isSmall(join.right())) {
      return;
    }
    List<Expression> left = CollectionConverters.asJava(keys.get()._2());
    List<Expression> right = CollectionConverters.asJava(keys.get()._3());
    JoinType type = join.joinType();
    for (int i = 0; i < left.size(); i++) {
      if (left.get(i) instanceof AttributeReference leftKey
          && right.get(i) instanceof AttributeReference rightKey) {
        LockgateScan leftScan = scanOf(join.left(), leftKey);
        LockgateScan rightScan = scanOf(join.right(), rightKey);
        if (leftScan == null || rightScan == null || leftScan == rightScan) {
          continue;
        }
        if (SmallSides.PRUNES_LEFT.contains(type)) {
          add(found, leftScan, leftKey, rightScan, rightKey);
        }
        if (SmallSides.PRUNES_RIGHT.contains(type)) {
          add(found, rightScan, rightKey, leftScan, leftKey);
        }
      }
    }
  }

  private static void add(
      Map<LockgateScan, List<JoinedScan>> found,
      LockgateScan scan,
      Attribute key,
      LockgateScan other,
      Attribute otherKey) {
    if (scan.files() > SmallSides.FEW_FILES) {
      PushedScan request = other.state().request().pushedScan();
      found
          .computeIfAbsent(scan, each -> new ArrayList<>())
          .add(new JoinedScan(key.name(), otherKey.name(), request));
    }
  }

  /** The scan whose column a key is, if it offers the column; null without one. */
  private static LockgateScan scanOf(LogicalPlan plan, Attribute key) {
    if (plan instanceof DataSourceV2ScanRelation relation) {
      return relation.scan() instanceof LockgateScan scan && SmallSides.offers(scan, key)
          ? scan
          : null;
    } else if (plan instanceof Filter
        || plan instanceof Project
        || plan instanceof Join inner && inner.joinType().equals(Inner$.MODULE$)) {
      for (LogicalPlan child : CollectionConverters.asJava(plan.children())) {
        if (child.outputSet().contains(key)) {
          return scanOf(child, key);
        }
      }
    }
    return null;
  }
}

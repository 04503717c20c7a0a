package io.lockgate.spark.lineage;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The output of one node of a plan: its columns, and the columns that decide which rows there are.
 */
final class Scope {
  final Map<Long, Dependencies> columns = new HashMap<>();
  final Dependencies rows = new Dependencies();

  /** The columns in the order of the node's output, for nodes that go by position. */
  List<Long> order = List.of();

  static List<Long> ids(LogicalPlan plan) {
    List<Long> out = new ArrayList<>();
    for (Attribute attribute : CollectionConverters.asJava(plan.output())) {
      out.add(attribute.exprId().id());
    }
    return out;
  }

  Dependencies of(long id) {
    Dependencies found = columns.get(id);
    return found == null ? new Dependencies() : found;
  }

  Dependencies at(int position) {
    return of(order.get(position));
  }

  Scope addAll(Scope other) {
    columns.putAll(other.columns);
    rows.add(other.rows);
    return this;
  }

  /** Adds the columns of another scope to those of a node, one by one; tells whether any is new. */
  boolean align(LogicalPlan node, Scope from) {
    boolean changed = false;
    List<Long> ids = ids(node);
    for (int i = 0; i < Math.min(ids.size(), from.order.size()); i++) {
      Dependencies own = columns.computeIfAbsent(ids.get(i), id -> new Dependencies());
      int before = own.kinds().hashCode();
      own.add(from.at(i));
      changed |= own.kinds().hashCode() != before;
    }
    rows.add(from.rows);
    return changed;
  }

  Map<Long, Dependencies> within(Map<Long, Dependencies> outer) {
    Map<Long, Dependencies> out = new HashMap<>(outer);
    out.putAll(columns);
    return out;
  }
}

package io.lockgate.spark.rules.joins;

import io.lockgate.spark.enforcement.parts.NodeProduct;
import java.util.List;
import java.util.Objects;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LeafNode;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import scala.Function1;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Stands for the stream of a lookup join while Python plans the join.
 *
 * <p>The stream's own plan may need what is around it, such as a common table expression, so it
 * takes its place in the statement only.
 */
public final class StreamSide extends LogicalPlan implements LeafNode, NodeProduct {
  private final List<Attribute> columns;
  private final boolean isStream;
  private final Supplier<Statistics> statistics;

  /** As Spark copies it. */
  public StreamSide(List<Attribute> columns, boolean isStream, Supplier<Statistics> statistics) {
    this.columns = columns;
    this.isStream = isStream;
    this.statistics = statistics;
  }

  /**
   * Stands for a plan; {@code statistics} are asked for where a batch is compared with the table.
   */
  static StreamSide of(LogicalPlan plan, Supplier<Statistics> statistics) {
    return new StreamSide(
        CollectionConverters.asJava(plan.output()), plan.isStreaming(), statistics);
  }

  /** The plan in which {@code stream} takes its place again. */
  LogicalPlan replacedIn(LogicalPlan plan, LogicalPlan stream) {
    if (plan instanceof StreamSide) {
      return stream;
    }
    List<LogicalPlan> children = CollectionConverters.asJava(plan.children());
    List<LogicalPlan> made = children.stream().map(each -> replacedIn(each, stream)).toList();
    for (int i = 0; i < made.size(); i++) {
      if (made.get(i) != children.get(i)) {
        return plan.withNewChildren(CollectionConverters.asScala(made).toIndexedSeq());
      }
    }
    return plan;
  }

  @Override
  public boolean isStreaming() {
    return isStream;
  }

  @Override
  public Seq<Attribute> output() {
    return CollectionConverters.asScala(columns).toSeq();
  }

  @Override
  public Statistics computeStats() {
    return statistics.get();
  }

  @Override
  public Seq<LogicalPlan> children() {
    return CollectionConverters.asScala(List.<LogicalPlan>of()).toSeq();
  }

  @Override
  @SuppressWarnings({"unchecked", "rawtypes"}) // it has none
  public LogicalPlan mapChildren(Function1 change) {
    return this;
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return this;
  }

  @Override
  public List<?> arguments() {
    return List.of(columns, isStream, statistics);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof StreamSide side && side.columns.equals(columns);
  }

  @Override
  public int hashCode() {
    return Objects.hash(columns);
  }
}

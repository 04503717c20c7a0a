package io.lockgate.spark.rules.joins;

import io.lockgate.spark.enforcement.parts.NodeProduct;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A table that a statement looks up in, from when its text was read until the join is planned.
 *
 * <p>Its columns may be null, as those that a lookup adds.
 */
public final class LookupTable extends LogicalPlan implements NodeProduct {
  private final LogicalPlan child;
  private final String time;
  private final Map<String, String> options;

  /** {@code time} is the name of a column of the stream, or null where the clause names none. */
  public LookupTable(LogicalPlan child, String time, Map<String, String> options) {
    this.child = child;
    this.time = time;
    this.options = Map.copyOf(options);
  }

  LogicalPlan child() {
    return child;
  }

  String time() {
    return time;
  }

  Map<String, String> options() {
    return options;
  }

  /** The same table with more options, which win. */
  LookupTable with(Map<String, String> more) {
    Map<String, String> all = new HashMap<>(options);
    all.putAll(more);
    return new LookupTable(child, time, all);
  }

  @Override
  public Seq<LogicalPlan> children() {
    return CollectionConverters.asScala(List.of(child)).toSeq();
  }

  @Override
  public Seq<Attribute> output() {
    return CollectionConverters.asScala(
            CollectionConverters.asJava(child.output()).stream()
                .map(column -> column.withNullability(true))
                .toList())
        .toSeq();
  }

  /** Answers no columns: the cache has none of metadata. */
  @Override
  public Seq<Attribute> metadataOutput() {
    return CollectionConverters.asScala(List.<Attribute>of()).toSeq();
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return new LookupTable(children.apply(0), time, options);
  }

  @Override
  public String simpleString(int maxFields) {
    return "LookupTable" + (time == null ? "" : " as of " + time);
  }

  @Override
  public List<?> arguments() {
    return Arrays.asList(child, time, options);
  }

  @Override
  public boolean equals(Object other) {
    return isLike(other);
  }

  @Override
  public int hashCode() {
    return arguments().hashCode();
  }
}

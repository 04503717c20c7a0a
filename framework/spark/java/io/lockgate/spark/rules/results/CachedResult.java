package io.lockgate.spark.rules.results;

import io.lockgate.spark.enforcement.parts.NodeProduct;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeMap$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import scala.Option;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.math.BigInt;

/** A query whose rows are kept. */
public final class CachedResult extends LogicalPlan implements NodeProduct {
  private final Seq<Attribute> output;
  private final Results.Kept kept;

  public CachedResult(Seq<Attribute> output, Results.Kept kept) {
    this.output = output;
    this.kept = kept;
  }

  Results.Kept kept() {
    return kept;
  }

  @Override
  public Seq<Attribute> output() {
    return output;
  }

  @Override
  public Seq<LogicalPlan> children() {
    return CollectionConverters.asScala(List.<LogicalPlan>of()).toSeq();
  }

  @Override
  public Statistics stats() {
    return new Statistics(
        BigInt.apply(Math.max(1, kept.bytes())),
        Option.apply(BigInt.apply(kept.rows().length)),
        AttributeMap$.MODULE$.empty(),
        false);
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return this;
  }

  @Override
  public String simpleString(int maxFields) {
    return "CachedResult";
  }

  @Override
  public List<?> arguments() {
    return List.of(output, kept);
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

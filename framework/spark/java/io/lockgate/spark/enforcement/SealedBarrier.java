package io.lockgate.spark.enforcement;

import io.lockgate.spark.enforcement.parts.NodeProduct;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.optimizer.ReplaceCTERefWithRepartition$;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.Function1;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * A barrier whose relation is optimized, as a leaf.
 *
 * <p>What looks for relations in an optimized plan, as {@code DataFrame.inputFiles} does to name
 * their files, finds none here: names of files hold values of partition columns.
 */
public final class SealedBarrier extends LogicalPlan implements NodeProduct {
  /** Keeps nothing, so that all sessions share it. */
  private static final Rule<LogicalPlan> SEAL = new Seal();

  private final Barrier barrier;

  public SealedBarrier(Barrier barrier) {
    this.barrier = barrier;
  }

  Barrier barrier() {
    return barrier;
  }

  /**
   * Makes a session seal barriers once all other rules are done. Extensions have no place for a
   * last rule, and Spark's rules still change what is below a barrier.
   */
  static void sealing(SparkSession session) {
    var methods = session.experimental();
    List<Rule<LogicalPlan>> rules =
        new ArrayList<>(CollectionConverters.asJava(methods.extraOptimizations()));
    if (!rules.contains(SEAL)) {
      rules.add(SEAL);
      methods.extraOptimizations_$eq(CollectionConverters.asScala(rules).toSeq());
    }
  }

  private static final class Seal extends Rule<LogicalPlan> {
    @Override
    public LogicalPlan apply(LogicalPlan plan) {
      return plan.transformDown(new Sealing());
    }
  }

  private static final class Sealing extends AbstractPartialFunction<LogicalPlan, LogicalPlan> {
    @Override
    public boolean isDefinedAt(LogicalPlan plan) {
      return plan instanceof Barrier barrier && !barrier.isStreaming() && readsOthers(barrier);
    }

    @Override
    @SuppressWarnings("unchecked") // a plan takes the place of one
    public <A extends LogicalPlan, B> B applyOrElse(A plan, Function1<A, B> otherwise) {
      return isDefinedAt(plan) ? (B) sealed((Barrier) plan) : otherwise.apply(plan);
    }

    /** One rule of Spark's comes later still. */
    private static SealedBarrier sealed(Barrier barrier) {
      SealedBarrier made =
          new SealedBarrier(
              barrier.over(ReplaceCTERefWithRepartition$.MODULE$.apply(barrier.child())));
      made.copyTagsFrom(barrier);
      return made;
    }

    /** Tables of ours name no files, and kept results look for their scans. */
    private static boolean readsOthers(Barrier barrier) {
      return barrier.exists(
          each ->
              each.children().isEmpty()
                  && !(each instanceof DataSourceV2ScanRelation scan
                      && Relations.isOurs(scan.relation())));
    }
  }

  @Override
  public Seq<LogicalPlan> children() {
    return CollectionConverters.asScala(List.<LogicalPlan>of()).toSeq();
  }

  @Override
  public Seq<Attribute> output() {
    return barrier.output();
  }

  @Override
  public Seq<Attribute> metadataOutput() {
    return barrier.metadataOutput();
  }

  @Override
  public AttributeSet producedAttributes() {
    return outputSet();
  }

  /** A leaf has no children to add up. */
  @Override
  public Statistics stats() {
    return barrier.stats();
  }

  @Override
  public LogicalPlan doCanonicalize() {
    return new SealedBarrier((Barrier) ((QueryPlan<?>) barrier).canonicalized());
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return this;
  }

  @Override
  public String simpleString(int maxFields) {
    return barrier.simpleString(maxFields);
  }

  @Override
  public List<?> arguments() {
    return List.of(barrier);
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

package io.lockgate.spark.rules.joins;

import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.expressions.AttributeMap$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import scala.Option;
import scala.math.BigInt$;

/** The size of a stream as Spark estimates it, asked once and only if needed. */
final class StreamStatistics implements Supplier<Statistics> {
  private final SparkSession session;
  private final LogicalPlan plan;
  private Statistics found;

  StreamStatistics(SparkSession session, LogicalPlan plan) {
    this.session = session;
    this.plan = plan;
  }

  @Override
  public synchronized Statistics get() {
    if (found == null) {
      found = ask();
    }
    return found;
  }

  private Statistics ask() {
    try {
      return Dataset.ofRows(session, plan).queryExecution().optimizedPlan().stats();
    } catch (Exception e) {
      return unknown(); // a part of a statement that means nothing alone
    }
  }

  private Statistics unknown() {
    return new Statistics(
        BigInt$.MODULE$.apply(session.sessionState().conf().defaultSizeInBytes()),
        Option.empty(),
        AttributeMap$.MODULE$.empty(),
        false);
  }
}

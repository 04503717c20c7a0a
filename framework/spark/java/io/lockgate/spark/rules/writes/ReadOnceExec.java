package io.lockgate.spark.rules.writes;

import io.lockgate.spark.enforcement.parts.LeafRowsExec;
import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** The rows of a {@link SingleReading}. */
public final class ReadOnceExec extends LeafRowsExec {
  /** Plans {@link ReadOnce}; keeps nothing, so that all sessions share it. */
  public static final SparkStrategy STRATEGY = new Strategy();

  private final transient SingleReading reading;

  public ReadOnceExec(Seq<Attribute> output, SingleReading reading) {
    super(output, reading);
    this.reading = reading;
  }

  @Override
  public RDD<InternalRow> doExecute() {
    return reading.rows(session());
  }

  @Override
  public Iterator<Object> stringArgs() {
    return CollectionConverters.asScala(List.<Object>of(output()).iterator());
  }

  private static final class Strategy extends SparkStrategy {
    @Override
    public Seq<SparkPlan> apply(LogicalPlan plan) {
      List<SparkPlan> planned = List.of();
      if (plan instanceof ReadOnce once) {
        once.reading().of(once.child());
        planned = List.of(new ReadOnceExec(once.output(), once.reading()));
      }
      return CollectionConverters.asScala(planned).toSeq();
    }
  }
}

package io.lockgate.spark.rules;

import io.lockgate.spark.enforcement.parts.DriverRowsExec;
import io.lockgate.spark.files.batches.SmallAggregate;
import io.lockgate.spark.scan.DriverRead;
import io.lockgate.spark.scan.LockgateScan;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A scan that the driver has read: like Spark's LocalTableScan, but it says what it is and has the
 * metrics of a scan. Where only its rows are asked for, no job is started.
 */
public final class DriverScanExec extends DriverRowsExec {
  private static final String ROWS = "numOutputRows";

  private final transient DriverRead read;
  private transient Map<String, SQLMetric> metrics;

  public DriverScanExec(Seq<Attribute> output, DriverRead read) {
    super(output, read);
    this.read = read;
  }

  static DriverScanExec of(List<NamedExpression> wanted, DriverRead read) {
    return new DriverScanExec(
        CollectionConverters.asScala(wanted.stream().map(NamedExpression::toAttribute).toList())
            .toSeq(),
        read);
  }

  /** Returns this scan with its rows aggregated. */
  DriverScanExec aggregated(List<NamedExpression> wanted, SmallAggregate aggregate) {
    return of(wanted, read.with(aggregate.rows(read.rows())));
  }

  /** Returns what was read. */
  LockgateScan scan() {
    return read.scan();
  }

  @Override
  public synchronized Map<String, SQLMetric> metrics() {
    if (metrics == null) {
      List<Tuple2<String, SQLMetric>> all = new ArrayList<>();
      all.add(new Tuple2<>(ROWS, SQLMetrics.createMetric(sparkContext(), "number of output rows")));
      for (CustomMetric metric : scan().supportedCustomMetrics()) {
        all.add(
            new Tuple2<>(metric.name(), SQLMetrics.createV2CustomMetric(sparkContext(), metric)));
      }
      metrics = scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(all));
    }
    return metrics;
  }

  /** The rows, for one execution, which gets the metrics. */
  @Override
  protected InternalRow[] rows() {
    longMetric(ROWS).set(read.count());
    for (CustomTaskMetric metric : scan().reportDriverMetrics()) {
      longMetric(metric.name()).set(metric.value());
    }
    SQLMetrics.postDriverMetricUpdates(
        sparkContext(),
        sparkContext().getLocalProperty(SQLExecution.EXECUTION_ID_KEY()),
        metrics().values().toSeq());
    return read.rows();
  }

  @Override
  public Iterator<Object> stringArgs() {
    return CollectionConverters.asScala(
        List.<Object>of(output(), scan().description() + " read on the driver").iterator());
  }
}

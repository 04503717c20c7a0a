package io.lockgate.spark.lineage;

import com.codahale.metrics.MetricRegistry;
import io.lockgate.spark.enforcement.parts.Part;
import org.apache.spark.SparkContext;

/** Records of the statements of an application. */
public final class LineagePart implements Part {
  @Override
  public void startOnDriver(SparkContext context, MetricRegistry metrics) {
    LineageListener.watch(context, metrics);
  }
}

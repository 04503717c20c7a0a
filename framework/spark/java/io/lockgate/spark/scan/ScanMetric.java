package io.lockgate.spark.scan;

import org.apache.spark.sql.connector.metric.CustomSumMetric;

/**
 * One figure of a scan, whatever it counts. Spark makes another one by the name of this class where
 * it only adds values up, which takes neither name nor description.
 */
public final class ScanMetric extends CustomSumMetric {
  private final String name;
  private final String description;

  /** Made by Spark, to add values up. */
  public ScanMetric() {
    this("", "");
  }

  ScanMetric(String name, String description) {
    this.name = name;
    this.description = description;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public String description() {
    return description;
  }
}

package io.lockgate.spark.orc;

import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.Filter;

/** The driver's entry to reading: the reader factory of a planned scan. {@link Packing} makes its partitions. */
public final class OrcScans {
  private OrcScans() {}

  /** The factory of the scan's readers. */
  public static PartitionReaderFactory readerFactory(SparkSession spark, ScanSpec spec) {
    SQLConf conf = spark.sessionState().conf();
    Filter[] filters = conf.orcFilterPushDown() ? spec.filters() : new Filter[0];
    return new ScanReaders(spec, SentConfiguration.of(spark), filters, conf.orcVectorizedReaderBatchSize());
  }
}

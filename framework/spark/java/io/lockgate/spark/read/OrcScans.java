package io.lockgate.spark.read;

import io.lockgate.spark.files.SentConfiguration;
import io.lockgate.spark.messages.PlanAnswer;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.Filter;

/**
 * The driver's entry to reading: the reader factory of a planned scan. {@link SplitPacker} makes
 * its partitions.
 */
public final class OrcScans {
  private OrcScans() {}

  /** Everything that a plan reads as one partition, of files that are not cut. */
  public static InputPartition wholePartition(ScanSpec spec, PlanAnswer plan) {
    return new LockgatePartition.Any(spec.splits(plan, Long.MAX_VALUE));
  }

  /** The factory of the scan's readers. */
  public static PartitionReaderFactory readerFactory(SparkSession spark, ScanSpec spec) {
    SQLConf conf = spark.sessionState().conf();
    boolean filters = conf.orcFilterPushDown();
    return new ScanReaders(
        spec,
        SentConfiguration.of(spark),
        filters ? spec.filters() : new Filter[0],
        filters ? spec.late() : new Filter[0],
        Math.max(1, conf.orcVectorizedReaderBatchSize()));
  }
}

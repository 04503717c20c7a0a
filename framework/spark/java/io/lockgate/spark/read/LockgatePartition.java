package io.lockgate.spark.read;

import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.sql.connector.read.InputPartition;

/** The splits that one task reads, one after the other. */
sealed interface LockgatePartition extends InputPartition {
  List<SplitSpec> splits();

  /** Splits of any buckets. */
  record Any(List<SplitSpec> splits) implements LockgatePartition {}

  /** Splits of one bucket of one partition of the table, which {@code partitionKey} names. */
  record OfBucket(List<SplitSpec> splits, InternalRow partitionKey)
      implements LockgatePartition, HasPartitionKey {}
}

package io.lockgate.spark.orc;

import java.util.List;
import org.apache.spark.sql.connector.read.InputPartition;

/** The splits that one task reads, one after the other. */
public record LockgatePartition(List<SplitSpec> splits) implements InputPartition {}

package io.lockgate.spark.orc;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;

/** The driver's entry to reading: partitions and the reader factory of a planned scan. */
public final class OrcScans {
  private OrcScans() {}

  public static InputPartition[] partitions(SparkSession spark, ScanSpec spec, JsonNode plan) {
    throw new UnsupportedOperationException();
  }

  public static PartitionReaderFactory readerFactory(SparkSession spark, ScanSpec spec) {
    throw new UnsupportedOperationException();
  }

  public static boolean columnar(ScanSpec spec) {
    throw new UnsupportedOperationException();
  }
}

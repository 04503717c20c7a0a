package io.lockgate.spark.orc;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.unsafe.types.UTF8String;

/** The driver's entry to reading: the partitions and the reader factory of a planned scan. */
public final class OrcScans {
  private OrcScans() {}

  /** Packs the plan's splits into partitions of about the size Spark wants; files that need no merge may be cut. */
  public static InputPartition[] partitions(SparkSession spark, ScanSpec spec, JsonNode plan) {
    long openCost = spark.sessionState().conf().filesOpenCostInBytes();
    long total = 0;
    for (JsonNode split : plan.get("splits")) {
      for (JsonNode file : split.get("files")) {
        total += file.get("size").asLong() + openCost;
      }
    }
    final long bytes = total;
    long most = FilePartition.maxSplitBytes(spark, () -> (Object) bytes);
    List<SplitSpec> pieces = new ArrayList<>();
    plan.get("splits").forEach(split -> cut(split, spec, most, pieces));
    pieces.sort(Comparator.comparingLong(SplitSpec::bytes).reversed());
    return pack(pieces, most, openCost);
  }

  private static void cut(JsonNode split, ScanSpec spec, long most, List<SplitSpec> pieces) {
    Map<String, Serializable> partition = SplitSpec.partition(split.path("partition"), spec.tableSchema());
    if (spec.isOfFile(FileColumns.PARTITION)) {
      partition.put(FileColumns.PARTITION, UTF8String.fromString(split.path("partition_text").asText()));
    }
    if (spec.isOfFile(FileColumns.BUCKET)) {
      partition.put(FileColumns.BUCKET, split.path("bucket").asInt());
    }
    List<SplitSpec.DataFile> files = SplitSpec.files(split.get("files"));
    if (split.path("merge").asBoolean()) {
      if (spec.mergePlan() == null) {
        throw new IllegalArgumentException("the plan holds files to merge but no merge_plan");
      }
      pieces.add(new SplitSpec(partition, true, files, 0, Long.MAX_VALUE));
      return;
    }
    for (SplitSpec.DataFile file : files) {
      for (long start = 0; start < file.size(); start += most) {
        pieces.add(new SplitSpec(partition, false, List.of(file), start, Math.min(most, file.size() - start)));
      }
    }
  }

  private static InputPartition[] pack(List<SplitSpec> pieces, long most, long openCost) {
    List<InputPartition> partitions = new ArrayList<>();
    List<SplitSpec> current = new ArrayList<>();
    long size = 0;
    for (SplitSpec piece : pieces) {
      if (size + piece.bytes() > most && !current.isEmpty()) {
        partitions.add(new LockgatePartition(List.copyOf(current)));
        current.clear();
        size = 0;
      }
      current.add(piece);
      size += piece.bytes() + openCost;
    }
    if (!current.isEmpty()) {
      partitions.add(new LockgatePartition(List.copyOf(current)));
    }
    return partitions.toArray(InputPartition[]::new);
  }

  /** The factory of the scan's readers. */
  public static PartitionReaderFactory readerFactory(SparkSession spark, ScanSpec spec) {
    SQLConf conf = spark.sessionState().conf();
    Filter[] filters = conf.orcFilterPushDown() ? spec.filters() : new Filter[0];
    return new ScanReaders(spec, SentConfiguration.of(spark), filters, conf.orcVectorizedReaderBatchSize());
  }
}

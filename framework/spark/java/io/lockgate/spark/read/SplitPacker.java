package io.lockgate.spark.read;

import io.lockgate.spark.messages.FileJson;
import io.lockgate.spark.messages.PlanAnswer;
import io.lockgate.spark.messages.SplitJson;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.partitioning.UnknownPartitioning;
import org.apache.spark.sql.execution.datasources.FilePartition;

/**
 * Packs the splits of a scan into partitions of about the size wanted: the table's options say,
 * else Spark's confs.
 *
 * <p>The first plan of a scan decides how, since later ones hold a part of its files. Buckets are
 * kept apart, so that Spark can join bucket by bucket without moving rows, where that neither makes
 * many more tasks nor leaves cores idle.
 */
public final class SplitPacker {
  private static final int FEW_TASKS = 16;

  private final ScanSpec spec;
  private final long most;
  private final long openCost;
  private final boolean byBucket;
  private final boolean wholeFiles;
  private final Map<InternalRow, Integer> planned = new HashMap<>();

  private SplitPacker(
      ScanSpec spec, long most, long openCost, boolean byBucket, boolean wholeFiles) {
    this.spec = spec;
    this.most = most;
    this.openCost = openCost;
    this.byBucket = byBucket;
    this.wholeFiles = wholeFiles;
  }

  /**
   * Decides by the first plan of a scan; {@code mayKeepBuckets}: whether Spark may be told of
   * buckets.
   */
  public static SplitPacker of(
      SparkSession spark, ScanSpec spec, PlanAnswer plan, boolean mayKeepBuckets) {
    long openCost = openCost(spark, plan);
    long most = most(spark, plan, openCost);
    boolean bucketed =
        mayKeepBuckets
            && plan.bucketing() != null
            && spark.sessionState().conf().v2BucketingEnabled();
    SplitPacker packer = new SplitPacker(spec, most, openCost, bucketed, false);
    return bucketed && !packer.keepsWithEase(plan, spark.sparkContext().defaultParallelism())
        ? new SplitPacker(spec, most, openCost, false, false)
        : packer;
  }

  /** Packs files that are read in order, each of them by one task. */
  public static SplitPacker ofWholeFiles(SparkSession spark, ScanSpec spec, PlanAnswer plan) {
    long openCost = openCost(spark, plan);
    return new SplitPacker(spec, most(spark, plan, openCost), openCost, false, true);
  }

  private static long openCost(SparkSession spark, PlanAnswer plan) {
    Long wanted = plan.splitSizes().openFileCost();
    return wanted == null ? spark.sessionState().conf().filesOpenCostInBytes() : wanted;
  }

  private static long most(SparkSession spark, PlanAnswer plan, long openCost) {
    Long wanted = plan.splitSizes().targetSize();
    return Math.max(wanted == null ? sparksSize(spark, plan, openCost) : wanted, 1);
  }

  private static long sparksSize(SparkSession spark, PlanAnswer plan, long openCost) {
    long total = 0;
    for (SplitJson split : plan.splits()) {
      for (FileJson file : split.files()) {
        total += file.size() + openCost;
      }
    }
    final long bytes = total;
    return FilePartition.maxSplitBytes(spark, () -> (Object) bytes);
  }

  private boolean keepsWithEase(PlanAnswer plan, int cores) {
    List<SplitSpec> pieces = spec.splits(plan, wholeFiles ? Long.MAX_VALUE : most);
    int free = pack(pieces, LockgatePartition.Any::new).size();
    Map<InternalRow, List<SplitSpec>> buckets = byKey(pieces);
    int kept =
        buckets.values().stream()
            .mapToInt(bucket -> pack(bucket, LockgatePartition.Any::new).size())
            .sum();
    return kept <= Math.max(2 * free, Math.max(FEW_TASKS, 2 * cores))
        && buckets.size() >= Math.min(free, cores);
  }

  /**
   * Facts about the partitions that Spark may use; {@code keys} are the table's partition columns
   * and its bucket.
   */
  public Partitioning partitioning(Expression[] keys, int partitions) {
    return byBucket
        ? new KeyGroupedPartitioning(keys, partitions)
        : new UnknownPartitioning(partitions);
  }

  /**
   * The partitions of a plan: the first one, or one that filters known at run time left less of.
   */
  public synchronized InputPartition[] partitions(PlanAnswer plan) {
    List<SplitSpec> pieces = spec.splits(plan, wholeFiles ? Long.MAX_VALUE : most);
    if (!byBucket) {
      return pack(pieces, LockgatePartition.Any::new).toArray(InputPartition[]::new);
    }
    List<InputPartition> all = new ArrayList<>();
    byKey(pieces)
        .forEach(
            (key, bucket) -> {
              List<LockgatePartition> packed =
                  pack(bucket, splits -> new LockgatePartition.OfBucket(splits, key));
              // Spark has counted the partitions of each bucket: there cannot be more of them
              // later.
              int allowed = planned.computeIfAbsent(key, absent -> packed.size());
              all.addAll(packed.size() <= allowed ? packed : List.of(combined(packed, key)));
            });
    return all.toArray(InputPartition[]::new);
  }

  private static LockgatePartition combined(List<LockgatePartition> packed, InternalRow key) {
    return new LockgatePartition.OfBucket(
        packed.stream().flatMap(partition -> partition.splits().stream()).toList(), key);
  }

  private Map<InternalRow, List<SplitSpec>> byKey(List<SplitSpec> pieces) {
    Map<InternalRow, List<SplitSpec>> buckets = new LinkedHashMap<>();
    pieces.forEach(
        piece -> buckets.computeIfAbsent(key(piece), absent -> new ArrayList<>()).add(piece));
    return buckets;
  }

  private InternalRow key(SplitSpec piece) {
    List<String> columns = spec.partitionColumns();
    Object[] key = new Object[columns.size() + 1];
    for (int i = 0; i < columns.size(); i++) {
      key[i] = piece.partition().get(columns.get(i));
    }
    key[columns.size()] = piece.bucket();
    return new GenericInternalRow(key);
  }

  private List<LockgatePartition> pack(
      List<SplitSpec> pieces, Function<List<SplitSpec>, LockgatePartition> make) {
    List<SplitSpec> largestFirst = new ArrayList<>(pieces);
    largestFirst.sort(Comparator.comparingLong(SplitSpec::bytes).reversed());
    List<LockgatePartition> partitions = new ArrayList<>();
    List<SplitSpec> current = new ArrayList<>();
    long size = 0;
    for (SplitSpec piece : largestFirst) {
      if (size + piece.bytes() > most && !current.isEmpty()) {
        partitions.add(make.apply(List.copyOf(current)));
        current.clear();
        size = 0;
      }
      current.add(piece);
      size += piece.bytes() + openCost;
    }
    if (!current.isEmpty()) {
      partitions.add(make.apply(List.copyOf(current)));
    }
    return partitions;
  }
}

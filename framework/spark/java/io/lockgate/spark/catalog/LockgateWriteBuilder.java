package io.lockgate.spark.catalog;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.messages.WriteSpec;
import io.lockgate.spark.scan.WriteDistribution;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend;

/** Appends, upserts and overwrites, in batches and in streams. */
final class LockgateWriteBuilder
    implements SupportsOverwriteV2, SupportsDynamicOverwrite, SupportsStreamingUpdateAsAppend {
  /** The option of a write whose rows come in the order in which they are to lie. */
  private static final String REWRITE = "lockgate.rewrite";

  private final LockgateTable table;
  private final WriteJob job;

  LockgateWriteBuilder(LockgateTable table, LogicalWriteInfo info) {
    this(table, new WriteJob(table, info, "append"));
  }

  LockgateWriteBuilder(LockgateTable table, WriteJob job) {
    this.table = table;
    this.job = job;
  }

  @Override
  public WriteBuilder truncate() {
    job.mode("truncate", new Predicate[0]);
    return this;
  }

  @Override
  public WriteBuilder overwrite(Predicate[] predicates) {
    job.mode("overwrite", predicates);
    return this;
  }

  @Override
  public boolean canOverwrite(Predicate[] predicates) {
    if (!table.canDeleteWhere(predicates)) {
      throw Bridge.failure(
          "An overwrite of table "
              + table.name()
              + " can only replace whole partitions, or all rows: DELETE the other rows, then"
              + " INSERT");
    }
    return true;
  }

  @Override
  public WriteBuilder overwriteDynamicPartitions() {
    job.mode("dynamic", new Predicate[0]);
    return this;
  }

  @Override
  public Write build() {
    return job.hasOption(REWRITE) ? new InOrder(table, job) : new Prepared(table, job);
  }

  /** Rows that a compaction has ordered: Spark must neither move nor sort them. */
  private record InOrder(LockgateTable table, WriteJob job) implements Write {
    @Override
    public BatchWrite toBatch() {
      return new Batch(job);
    }

    @Override
    public String description() {
      return table.name();
    }

    @Override
    public String toString() {
      return table.name();
    }
  }

  private record Prepared(LockgateTable table, WriteJob job)
      implements RequiresDistributionAndOrdering {
    @Override
    public Distribution requiredDistribution() {
      return WriteDistribution.of(table);
    }

    @Override
    public boolean distributionStrictlyRequired() {
      // A skewed partition of a table without a key may be split over tasks; the rows of a key must
      // not. Nor buckets alone: where
      // Spark need not keep to them it reads its shuffle by the tasks that made it, and each of
      // those has rows of every bucket.
      return !table.primaryKey().isEmpty() || table.partitionKeys().isEmpty();
    }

    @Override
    public int requiredNumPartitions() {
      return WriteDistribution.tasks(table);
    }

    @Override
    public long advisoryPartitionSizeInBytes() {
      return WriteDistribution.bytesOfTask(table);
    }

    @Override
    public SortOrder[] requiredOrdering() {
      return WriteDistribution.ordering(table);
    }

    @Override
    public BatchWrite toBatch() {
      return new Batch(job);
    }

    @Override
    public StreamingWrite toStreaming() {
      return new Stream(job);
    }

    @Override
    public String description() {
      return table.name();
    }

    @Override
    public String toString() {
      return table.name();
    }
  }

  private record Batch(WriteJob job) implements WriteJob.Batch {
    @Override
    public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
      WriteSpec reply = job.begin();
      return job.writers(reply, info);
    }
  }

  private record Stream(WriteJob job) implements StreamingWrite {
    @Override
    public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
      WriteSpec reply = job.beginBatch();
      return job.writers(reply, info);
    }

    @Override
    public void commit(long epoch, WriterCommitMessage[] messages) {
      job.commit(epoch, messages);
    }

    @Override
    public void abort(long epoch, WriterCommitMessage[] messages) {
      job.abort(epoch, messages);
    }
  }
}

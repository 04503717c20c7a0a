package io.lockgate.spark.catalog;

import io.lockgate.spark.files.FileColumns;
import io.lockgate.spark.messages.WriteSpec;
import io.lockgate.spark.scan.WriteDistribution;
import io.lockgate.spark.write.MarkingWriters;
import java.util.List;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.distributions.Distributions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.DeltaBatchWrite;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.DeltaWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;
import org.apache.spark.sql.connector.write.SupportsDelta;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * DELETE, UPDATE and MERGE on a table with deletion vectors and without a primary key: rows are
 * deleted where they lie, and new ones appended; no other row is written.
 */
record RowMarking(AppendTable table, Command command) implements SupportsDelta {
  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return table.changeScan(options);
  }

  @Override
  public NamedReference[] rowId() {
    return LockgateTable.references(List.of(FileColumns.PATH, FileColumns.ROW_INDEX));
  }

  /**
   * Spark knows the columns that say where a row lies in the condition of a DELETE only if they are
   * here.
   */
  @Override
  public NamedReference[] requiredMetadataAttributes() {
    return LockgateTable.references(
        List.of(FileColumns.PARTITION, FileColumns.BUCKET).stream()
            .filter(name -> command == Command.DELETE && FileColumns.has(name, table.structType()))
            .toList());
  }

  @Override
  public DeltaWriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new DeltaWriteBuilder() {
      @Override
      public DeltaWrite build() {
        return new Delta(table, command, info);
      }
    };
  }

  private record Delta(AppendTable table, Command command, LogicalWriteInfo info)
      implements DeltaWrite, RequiresDistributionAndOrdering {
    /**
     * Deletions of a task take a few bytes; the rows that are written meet as those of an INSERT
     * do.
     */
    @Override
    public Distribution requiredDistribution() {
      return command == Command.DELETE ? Distributions.unspecified() : WriteDistribution.of(table);
    }

    @Override
    public boolean distributionStrictlyRequired() {
      return command != Command.DELETE && table.partitionKeys().isEmpty();
    }

    @Override
    public int requiredNumPartitions() {
      return command == Command.DELETE ? 0 : WriteDistribution.tasks(table);
    }

    @Override
    public SortOrder[] requiredOrdering() {
      return new SortOrder[0];
    }

    @Override
    public DeltaBatchWrite toBatch() {
      WriteJob job = new WriteJob(table, info, "delete");
      job.marks();
      return new Batch(job);
    }

    @Override
    public String toString() {
      return table.name();
    }
  }

  private record Batch(WriteJob job) implements WriteJob.Batch, DeltaBatchWrite {
    @Override
    public DeltaWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
      WriteSpec reply = job.begin();
      return new MarkingWriters(job.writers(reply, info));
    }
  }
}

package io.lockgate.spark;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.sql.connector.distributions.Distribution;
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
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** DELETE, UPDATE and MERGE on a table with a primary key: the new state of each changed key is appended. */
record KeyTableChange(KeyTable table, Command command) implements SupportsDelta {
  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    // Strict: what is read here decides what is written, so a masked value must not be taken for the truth.
    return new LockgateScanBuilder(table, table.request(options), true);
  }

  @Override
  public NamedReference[] rowId() {
    return LockgateTable.references(table.primaryKey());
  }

  @Override
  public DeltaWriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new DeltaWriteBuilder() {
      @Override
      public DeltaWrite build() {
        return new Delta(table, info);
      }
    };
  }

  private record Delta(KeyTable table, LogicalWriteInfo info) implements DeltaWrite, RequiresDistributionAndOrdering {
    @Override
    public Distribution requiredDistribution() {
      return Distributing.of(table);
    }

    @Override
    public int requiredNumPartitions() {
      return Distributing.tasks(table);
    }

    @Override
    public SortOrder[] requiredOrdering() {
      return new SortOrder[0];
    }

    @Override
    public DeltaBatchWrite toBatch() {
      return new Batch(new WriteJob(table, info, "delete"));
    }

    @Override
    public String toString() {
      return table.name();
    }
  }

  private record Batch(WriteJob job) implements DeltaBatchWrite {
    @Override
    public DeltaWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
      JsonNode reply = job.begin();
      return new Writers.Delta(job.writers(reply), job.keyOrdinals());
    }

    @Override
    public void commit(WriterCommitMessage[] messages) {
      job.commit(null, messages);
    }

    @Override
    public void abort(WriterCommitMessage[] messages) {
      job.abort(null, messages);
    }
  }
}

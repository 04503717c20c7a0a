package io.lockgate.spark.files.batches;

import java.io.IOException;
import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Readers of the batches that others read, each changed by a step. */
public record MappedBatches(PartitionReaderFactory readers, Step step)
    implements PartitionReaderFactory {
  /** The change of a batch: into another one, or into null if none of its rows is left. */
  @FunctionalInterface
  public interface Step extends Serializable {
    ColumnarBatch apply(ColumnarBatch read);
  }

  @Override
  public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }

  @Override
  public PartitionReader<InternalRow> createReader(InputPartition partition) {
    throw new UnsupportedOperationException("all files are read as columns");
  }

  @Override
  public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
    return new Reader(readers.createColumnarReader(partition), step);
  }

  private static final class Reader implements PartitionReader<ColumnarBatch> {
    private final PartitionReader<ColumnarBatch> reader;
    private final Step step;
    private ColumnarBatch output;

    Reader(PartitionReader<ColumnarBatch> reader, Step step) {
      this.reader = reader;
      this.step = step;
    }

    @Override
    public boolean next() throws IOException {
      do {
        if (!reader.next()) {
          return false;
        }
        output = step.apply(reader.get());
      } while (output == null);
      return true;
    }

    @Override
    public ColumnarBatch get() {
      return output;
    }

    @Override
    public void close() throws IOException {
      reader.close();
    }
  }
}

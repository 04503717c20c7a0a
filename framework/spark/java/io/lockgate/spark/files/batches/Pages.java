package io.lockgate.spark.files.batches;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.List;
import java.util.zip.InflaterInputStream;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * A scan of rows that the driver has, as pages: streams of Arrow in zlib's format. Each task reads
 * one of them.
 */
public record Pages(String name, StructType schema, List<byte[]> pages) implements Scan, Batch {
  private record Page(byte[] bytes) implements InputPartition {}

  @Override
  public StructType readSchema() {
    return schema;
  }

  @Override
  public String description() {
    return name;
  }

  @Override
  public Batch toBatch() {
    return this;
  }

  @Override
  public InputPartition[] planInputPartitions() {
    return pages.stream().map(Page::new).toArray(InputPartition[]::new);
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new Readers();
  }

  private static final class Readers implements PartitionReaderFactory {
    @Override
    public boolean supportColumnarReads(InputPartition partition) {
      return true;
    }

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      throw new UnsupportedOperationException("pages are read as columns");
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
      return new Reader(((Page) partition).bytes());
    }
  }

  private static final class Reader implements PartitionReader<ColumnarBatch> {
    private final BufferAllocator allocator =
        ArrowUtils.rootAllocator().newChildAllocator("a page of rows", 0, Long.MAX_VALUE);
    private final ArrowStreamReader stream;
    private ColumnarBatch batch;

    Reader(byte[] bytes) {
      this.stream =
          new ArrowStreamReader(
              new InflaterInputStream(new ByteArrayInputStream(bytes)), allocator);
    }

    @Override
    public boolean next() throws IOException {
      if (!stream.loadNextBatch()) {
        return false;
      }
      VectorSchemaRoot root = stream.getVectorSchemaRoot();
      ColumnVector[] columns =
          root.getFieldVectors().stream().map(ArrowColumnVector::new).toArray(ColumnVector[]::new);
      batch = new ColumnarBatch(columns, root.getRowCount());
      return true;
    }

    @Override
    public ColumnarBatch get() {
      return batch;
    }

    @Override
    public void close() throws IOException {
      stream.close();
      allocator.close();
    }
  }
}

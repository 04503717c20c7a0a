package io.lockgate.spark.scan;

import io.lockgate.spark.batches.PickedVector;
import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * The rows that others read and that no kind calls gone. The kind is their last column, which is
 * dropped; no value is copied.
 */
record KeptRows(PartitionReaderFactory readers, int columns) implements PartitionReaderFactory {
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
    return new Reader(readers.createColumnarReader(partition), columns);
  }

  private static final class Reader implements PartitionReader<ColumnarBatch> {
    private static final int UPDATE_BEFORE = 1;
    private static final int DELETE = 3;

    private final PartitionReader<ColumnarBatch> reader;
    private final int columns;
    private ColumnarBatch output;

    Reader(PartitionReader<ColumnarBatch> reader, int columns) {
      this.reader = reader;
      this.columns = columns;
    }

    @Override
    public boolean next() throws IOException {
      while (reader.next()) {
        ColumnarBatch read = reader.get();
        int[] rows = new int[read.numRows()];
        int kept = kept(read.column(columns), rows);
        if (kept > 0) {
          output = picked(read, rows, kept);
          return true;
        }
      }
      return false;
    }

    private static int kept(ColumnVector kinds, int[] rows) {
      int kept = 0;
      for (int row = 0; row < rows.length; row++) {
        int kind = kinds.isNullAt(row) ? 0 : kinds.getByte(row);
        if (kind < 0 || kind > DELETE) {
          throw new IllegalStateException("a data file has a row of the unknown kind " + kind);
        }
        if (kind != UPDATE_BEFORE && kind != DELETE) {
          rows[kept++] = row;
        }
      }
      return kept;
    }

    private ColumnarBatch picked(ColumnarBatch read, int[] rows, int kept) {
      ColumnVector[] out = new ColumnVector[columns];
      int[] first = kept < rows.length ? new int[kept] : null;
      for (int i = 0; i < columns; i++) {
        out[i] = read.column(i);
        if (first != null) {
          PickedVector some = new PickedVector(out[i].dataType(), first, rows);
          some.bind(new ColumnVector[] {out[i]}, kept);
          out[i] = some;
        }
      }
      return new ColumnarBatch(out, kept);
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

package io.lockgate.spark.files.batches;

import java.io.IOException;
import java.util.Iterator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Readers of changes as rows of arrays: the old and the new row of an update together, as {@code
 * +U}, any other row alone.
 *
 * <p>An old row and its new one follow each other in a file. Source: Paimon's {@code
 * PackChangelogReader}.
 */
public record PairedChanges(
    PartitionReaderFactory readers, StructType read, String readKind, StructType shown, String kind)
    implements PartitionReaderFactory {
  private static final byte UPDATE_BEFORE = 1;
  private static final byte UPDATE_AFTER = 2;

  @Override
  public boolean supportColumnarReads(InputPartition partition) {
    return false;
  }

  @Override
  public PartitionReader<InternalRow> createReader(InputPartition partition) {
    return new Reader(readers.createColumnarReader(partition));
  }

  private final class Reader implements PartitionReader<InternalRow> {
    private final PartitionReader<ColumnarBatch> batches;
    private final int kindAt = read.fieldIndex(readKind);
    private Iterator<InternalRow> rows;
    private InternalRow ahead;
    private InternalRow output;

    Reader(PartitionReader<ColumnarBatch> batches) {
      this.batches = batches;
    }

    @Override
    public boolean next() throws IOException {
      InternalRow row = ahead == null ? read() : ahead;
      ahead = null;
      if (row == null) {
        return false;
      }
      InternalRow after = null;
      if (kindOf(row) == UPDATE_BEFORE) {
        ahead = read();
        if (ahead != null && kindOf(ahead) == UPDATE_AFTER) {
          after = ahead;
          ahead = null;
        }
      }
      output = arrays(row, after);
      return true;
    }

    /** Copies the next row, since vectors are filled again; null after the last one. */
    private InternalRow read() throws IOException {
      while (rows == null || !rows.hasNext()) {
        if (!batches.next()) {
          return null;
        }
        rows = batches.get().rowIterator();
      }
      return rows.next().copy();
    }

    private byte kindOf(InternalRow row) {
      return row.isNullAt(kindAt) ? 0 : row.getByte(kindAt);
    }

    private InternalRow arrays(InternalRow row, InternalRow after) {
      StructField[] fields = shown.fields();
      Object[] values = new Object[fields.length];
      for (int i = 0; i < values.length; i++) {
        if (fields[i].name().equals(kind)) {
          values[i] = RowKinds.text(kindOf(after == null ? row : after));
          continue;
        }
        int at = read.fieldIndex(fields[i].name());
        Object one = row.get(at, read.apply(at).dataType());
        values[i] =
            new GenericArrayData(
                after == null
                    ? new Object[] {one}
                    : new Object[] {one, after.get(at, read.apply(at).dataType())});
      }
      return new GenericInternalRow(values);
    }

    @Override
    public InternalRow get() {
      return output;
    }

    @Override
    public void close() throws IOException {
      batches.close();
    }
  }
}

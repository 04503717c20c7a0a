package io.lockgate.spark.files.batches;

import java.io.Closeable;
import java.io.IOException;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Batches of the scan's columns one after the other; a batch is valid until the next call of {@link
 * #nextBatch()}.
 */
public interface BatchSource extends Closeable {
  boolean nextBatch() throws IOException;

  ColumnarBatch batch();
}

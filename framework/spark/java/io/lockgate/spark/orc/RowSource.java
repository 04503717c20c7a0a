package io.lockgate.spark.orc;

import java.io.Closeable;
import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.types.StructType;

/** Rows one after the other; a row is valid until the next call of {@link #next()}. */
interface RowSource extends Closeable {
  boolean next() throws IOException;

  InternalRow row();

  /** Turns {@link #row()} into a row of the scan's schema. */
  UnsafeProjection projection(StructType schema);
}

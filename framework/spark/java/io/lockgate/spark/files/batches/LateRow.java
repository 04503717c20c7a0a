package io.lockgate.spark.files.batches;

import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;

/**
 * A row that is made once, on its first read.
 *
 * <p>It equals rows made of an equal request, so that a plan that has it in several places asks
 * once for all.
 */
public final class LateRow extends GenericInternalRow {
  private final int width;
  private final Object request;
  private Supplier<InternalRow> source;
  private GenericInternalRow made;

  public LateRow(int width, Object request, Supplier<InternalRow> source) {
    this.width = width;
    this.request = request;
    this.source = source;
  }

  private synchronized GenericInternalRow made() {
    if (made == null) {
      made = (GenericInternalRow) source.get();
      source = null;
    }
    return made;
  }

  @Override
  public int numFields() {
    return width;
  }

  @Override
  public Object genericGet(int ordinal) {
    return made().genericGet(ordinal);
  }

  @Override
  public GenericInternalRow copy() {
    return made().copy();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof LateRow row && request.equals(row.request);
  }

  @Override
  public int hashCode() {
    return request.hashCode();
  }

  @Override
  public String toString() {
    return "LateRow";
  }
}

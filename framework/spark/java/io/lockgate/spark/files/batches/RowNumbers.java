package io.lockgate.spark.files.batches;

import org.apache.spark.sql.types.DataTypes;

/**
 * The numbers of the rows of a batch in their file: rows of one batch follow each other, whatever
 * filters skip between.
 */
public final class RowNumbers extends PlainVector {
  private long first;

  public RowNumbers() {
    super(DataTypes.LongType);
  }

  /** Says which row the batch begins with. */
  public void startAt(long row) {
    first = row;
  }

  @Override
  public long getLong(int row) {
    return first + row;
  }
}

package io.lockgate.spark.read;

import io.lockgate.spark.files.batches.BatchSource;
import java.io.IOException;
import org.apache.spark.sql.vectorized.ColumnVector;

/**
 * Reads a range of one data file batch by batch, into a batch of its own or into pages that callers
 * keep.
 */
interface DataFileReader extends BatchSource {
  /** Some rows of a file, which stay as they are until the page is filled again. */
  interface Page {
    /** The columns asked for, with {@link #rows()} rows. */
    ColumnVector[] columns();

    int rows();
  }

  /**
   * Keeps {@code count} rows of {@link #batch()}, by their numbers in ascending order, and drops
   * the others; false if it cannot, and then the batch stays as it is. Numbers of rows are wrong
   * afterwards.
   */
  default boolean keep(int[] rows, int count) {
    return false;
  }

  /** A page of one's own, for {@link #fill}. */
  Page newPage();

  /** Fills a page of this reader's with the next rows; false at the end. */
  boolean fill(Page page) throws IOException;

  /**
   * The columns of a result: the constant ones, and the others in their order where there is no
   * constant.
   */
  static ColumnVector[] arrange(ColumnVector[] read, ColumnVector[] constants) {
    ColumnVector[] all = constants.clone();
    int next = 0;
    for (int i = 0; i < all.length; i++) {
      if (all[i] == null) {
        all[i] = read[next++];
      }
    }
    return all;
  }
}

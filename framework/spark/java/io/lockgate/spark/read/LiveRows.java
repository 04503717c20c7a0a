package io.lockgate.spark.read;

import io.lockgate.spark.batches.PickedVector;
import io.lockgate.spark.files.DeletedRows;
import java.io.IOException;
import java.util.Arrays;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * The rows of a file that its deletion vector leaves; the file's last column, which is dropped,
 * numbers its rows.
 */
final class LiveRows implements DataFileReader {
  private final DataFileReader file;
  private final DeletedRows deleted;
  private final int batchRows;
  private Selection selection;
  private ColumnarBatch whole;
  private ColumnarBatch some;
  private ColumnarBatch output;

  LiveRows(DataFileReader file, DeletedRows deleted, int batchRows) {
    this.file = file;
    this.deleted = deleted;
    this.batchRows = batchRows;
  }

  /** The rows of some columns that are left, and these rows as columns; no value is copied. */
  private final class Selection {
    private final ColumnVector numbers;
    private final int[] rows = new int[batchRows];
    private final PickedVector[] picked;
    private final ColumnVector[][] sources;
    private final ColumnVector[] columns;

    Selection(ColumnVector[] all) {
      int count = all.length - 1;
      numbers = all[count];
      picked = new PickedVector[count];
      sources = new ColumnVector[count][];
      columns = Arrays.copyOf(all, count);
      int[] first = new int[batchRows];
      for (int i = 0; i < count; i++) {
        if (!(all[i] instanceof ConstantColumnVector)) {
          picked[i] = new PickedVector(all[i].dataType(), first, rows);
          sources[i] = new ColumnVector[] {all[i]};
          columns[i] = picked[i];
        }
      }
    }

    /** Selects from the rows that the columns hold now; returns how many are left. */
    int select(int count) {
      int left = count == 0 ? 0 : choose(count);
      for (int i = 0; i < picked.length; i++) {
        if (picked[i] != null) {
          picked[i].bind(sources[i], left);
        }
      }
      return left;
    }

    private int choose(int count) {
      long first = numbers.getLong(0);
      if (numbers.getLong(count - 1) - first == count - 1) {
        return deleted.keep(first, count, rows);
      }
      int left = 0;
      for (int row = 0; row < count; row++) {
        if (!deleted.contains(numbers.getLong(row))) {
          rows[left++] = row;
        }
      }
      return left;
    }
  }

  @Override
  public boolean nextBatch() throws IOException {
    while (file.nextBatch()) {
      ColumnarBatch read = file.batch();
      if (selection == null) {
        open(read);
      }
      int left = selection.select(read.numRows());
      if (left > 0) {
        output = left == read.numRows() ? whole : some;
        output.setNumRows(left);
        return true;
      }
    }
    return false;
  }

  private void open(ColumnarBatch read) {
    ColumnVector[] columns = new ColumnVector[read.numCols()];
    Arrays.setAll(columns, read::column);
    selection = new Selection(columns);
    whole = new ColumnarBatch(Arrays.copyOf(columns, columns.length - 1));
    some = new ColumnarBatch(selection.columns);
  }

  @Override
  public ColumnarBatch batch() {
    return output;
  }

  @Override
  public Page newPage() {
    return new LivePage(file.newPage());
  }

  @Override
  public boolean fill(Page page) throws IOException {
    LivePage target = (LivePage) page;
    do {
      if (!file.fill(target.source)) {
        return false;
      }
      target.left = target.selection.select(target.source.rows());
    } while (target.left == 0);
    return true;
  }

  @Override
  public void close() throws IOException {
    file.close();
  }

  /** The rows that are left of a page. */
  private final class LivePage implements Page {
    private final Page source;
    private final Selection selection;
    private int left;

    LivePage(Page source) {
      this.source = source;
      this.selection = new Selection(source.columns());
    }

    @Override
    public ColumnVector[] columns() {
      return selection.columns;
    }

    @Override
    public int rows() {
      return left;
    }
  }
}

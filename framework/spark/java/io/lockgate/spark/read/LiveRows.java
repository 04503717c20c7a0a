package io.lockgate.spark.read;

import io.lockgate.spark.files.DeletedRows;
import io.lockgate.spark.files.batches.RowNumbers;
import io.lockgate.spark.files.batches.Selection;
import java.io.IOException;
import java.util.Arrays;
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
  private Live live;
  private boolean numbersRows;
  private ColumnarBatch whole;
  private ColumnarBatch some;
  private ColumnarBatch output;

  LiveRows(DataFileReader file, DeletedRows deleted, int batchRows) {
    this.file = file;
    this.deleted = deleted;
    this.batchRows = batchRows;
  }

  /** The rows of some columns that are left. */
  private final class Live {
    private final ColumnVector numbers;
    private final Selection selection;

    Live(ColumnVector[] all) {
      int count = all.length - 1;
      numbers = all[count];
      selection = new Selection(Arrays.copyOf(all, count), batchRows);
    }

    ColumnVector[] columns() {
      return selection.columns();
    }

    /** Selects from the rows that the columns hold now; returns how many are left. */
    int select(int count) {
      int left = count == 0 ? 0 : choose(count);
      selection.select(left);
      return left;
    }

    /** Finds the rows that are left, in {@code selection.rows()}; returns how many. */
    private int choose(int count) {
      int[] rows = selection.rows();
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
      if (live == null) {
        open(read);
      }
      int left = read.numRows() == 0 ? 0 : live.choose(read.numRows());
      if (left > 0) {
        output = left == read.numRows() || isKept(left) ? whole : some;
        output.setNumRows(left);
        return true;
      }
    }
    return false;
  }

  /** Leaves the chosen rows alone in the file's batch, or else selects them from it. */
  private boolean isKept(int left) {
    if (!numbersRows && file.keep(live.selection.rows(), left)) {
      return true;
    }
    live.selection.select(left);
    return false;
  }

  private void open(ColumnarBatch read) {
    ColumnVector[] columns = new ColumnVector[read.numCols()];
    Arrays.setAll(columns, read::column);
    live = new Live(columns);
    ColumnVector[] shown = Arrays.copyOf(columns, columns.length - 1);
    numbersRows = Arrays.stream(shown).anyMatch(RowNumbers.class::isInstance);
    whole = new ColumnarBatch(shown);
    some = new ColumnarBatch(live.columns());
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
      target.left = target.live.select(target.source.rows());
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
    private final Live live;
    private int left;

    LivePage(Page source) {
      this.source = source;
      this.live = new Live(source.columns());
    }

    @Override
    public ColumnVector[] columns() {
      return live.columns();
    }

    @Override
    public int rows() {
      return left;
    }
  }
}

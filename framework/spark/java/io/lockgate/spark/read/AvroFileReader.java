package io.lockgate.spark.read;

import io.lockgate.spark.files.avro.AvroRows;
import io.lockgate.spark.files.batches.RowNumbers;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.RowToColumnConverter;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Reads a range of one Avro file, row by row into columns. Filters skip nothing inside it. */
final class AvroFileReader implements DataFileReader {
  static final String SUFFIX = ".avro";

  private final AvroRows rows;
  private final FileLayout layout;
  private final Set<String> names;
  private final ColumnVector[] constants;
  private final int batchRows;
  private final RowToColumnConverter converter;
  private Rows own;
  private ColumnarBatch output;

  private AvroFileReader(
      AvroRows rows,
      FileLayout layout,
      Set<String> names,
      ColumnVector[] constants,
      int batchRows) {
    this.rows = rows;
    this.layout = layout;
    this.names = names;
    this.constants = constants;
    this.batchRows = batchRows;
    this.converter = new RowToColumnConverter(layout.in(names::contains, 0).request());
  }

  /** Opens a file; {@code constants} as for {@link OrcFileReader#open}. */
  static AvroFileReader open(
      Configuration conf,
      SplitSpec.DataFile file,
      FileLayout layout,
      OrcFileReader.Settings settings,
      ColumnVector[] constants)
      throws IOException {
    long length = Math.min(settings.length(), file.size() - settings.start());
    Set<String> names = new HashSet<>();
    boolean counted = Arrays.stream(constants).anyMatch(RowNumbers.class::isInstance);
    AvroRows rows =
        AvroRows.open(
            conf,
            new Path(file.path()),
            new AvroRows.Range(settings.start(), settings.start() + length),
            counted,
            stored -> {
              names.addAll(stored);
              return layout.in(names::contains, 0).request();
            });
    return new AvroFileReader(rows, layout, names, constants, settings.batchRows());
  }

  @Override
  public boolean nextBatch() throws IOException {
    if (output == null) {
      own = new Rows();
      output = new ColumnarBatch(own.columns());
    }
    boolean found = own.fill();
    output.setNumRows(own.rows());
    return found;
  }

  @Override
  public ColumnarBatch batch() {
    return output;
  }

  @Override
  public Page newPage() {
    return new Rows();
  }

  @Override
  public boolean fill(Page page) throws IOException {
    return ((Rows) page).fill();
  }

  @Override
  public void close() throws IOException {
    rows.close();
  }

  /** Vectors of their own for some rows of the file. */
  private final class Rows implements Page {
    private final OnHeapColumnVector[] read;
    private final FileLayout.Stored stored = layout.in(names::contains, batchRows);
    private final RowNumbers numbers = new RowNumbers();
    private final ColumnVector[] columns;
    private int count;

    Rows() {
      read = OnHeapColumnVector.allocateColumns(batchRows, stored.request());
      ColumnVector[] fixed =
          Arrays.stream(constants)
              .map(column -> column instanceof RowNumbers ? numbers : column)
              .toArray(ColumnVector[]::new);
      columns = DataFileReader.arrange(stored.columns(i -> read[i], batchRows), fixed);
    }

    boolean fill() throws IOException {
      for (OnHeapColumnVector column : read) {
        column.reset();
      }
      numbers.startAt(rows.position());
      for (count = 0; count < batchRows && rows.next(); count++) {
        converter.convert(rows.row(), read);
      }
      stored.cast(i -> read[i], count);
      return count > 0;
    }

    @Override
    public ColumnVector[] columns() {
      return columns;
    }

    @Override
    public int rows() {
      return count;
    }
  }
}

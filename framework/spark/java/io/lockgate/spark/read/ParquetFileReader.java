package io.lockgate.spark.read;

import io.lockgate.spark.files.Columns;
import io.lockgate.spark.files.batches.RowNumbers;
import io.lockgate.spark.files.batches.VectorCopy;
import io.lockgate.spark.files.parquet.ParquetFooters;
import io.lockgate.spark.files.parquet.ParquetSearch;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapred.FileSplit;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.parquet.filter2.predicate.FilterPredicate;
import org.apache.parquet.hadoop.ParquetInputFormat;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.io.SeekableInputStream;
import org.apache.parquet.schema.MessageType;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.parquet.ParquetReadSupport;
import org.apache.spark.sql.execution.datasources.parquet.ParquetReadSupport$;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Reads a range of one Parquet file by Spark's own vectorised reader.
 *
 * <p>Columns are found by the names of the schema that the file was written with; ids in the file
 * are not trusted, since not all writers give them. Dates and timestamps are passed on as they lie
 * in the file, as Paimon does; no calendar is converted.
 */
final class ParquetFileReader implements DataFileReader {
  static final String SUFFIX = ".parquet";

  private static final String ROW_INDEX = "_tmp_metadata_row_index";
  private static final String NO_REBASE = "CORRECTED";

  private final VectorizedParquetRecordReader reader;
  private final FileLayout.Stored stored;
  private final boolean countsRows;
  private final ColumnVector[] constants;
  private final int batchRows;
  private ColumnarBatch output;

  private ParquetFileReader(
      VectorizedParquetRecordReader reader,
      FileLayout.Stored stored,
      ColumnVector[] constants,
      int batchRows) {
    this.reader = reader;
    this.stored = stored;
    this.constants = constants;
    this.countsRows = Arrays.stream(constants).anyMatch(RowNumbers.class::isInstance);
    this.batchRows = batchRows;
  }

  /**
   * Opens a file; {@code constants} as for {@link OrcFileReader#open}, filters leave out row groups
   * and pages.
   */
  static ParquetFileReader open(
      Configuration conf,
      SplitSpec.DataFile file,
      FileLayout layout,
      OrcFileReader.Settings settings,
      ColumnVector[] constants)
      throws IOException {
    Path path = new Path(file.path());
    long length = Math.min(settings.length(), file.size() - settings.start());
    FileSplit range = new FileSplit(path, settings.start(), length, new String[0]);
    FileStatus status = path.getFileSystem(conf).getFileStatus(path);
    HadoopInputFile input = HadoopInputFile.fromStatus(status, conf);
    SeekableInputStream stream = input.newStream();
    try {
      ParquetMetadata footer =
          ParquetFooters.read(conf, status, stream, settings.start(), settings.length());
      MessageType schema = footer.getFileMetaData().getSchema();
      FileLayout.Stored stored = layout.in(schema::containsField, settings.batchRows());
      StructType request = stored.request();
      if (Arrays.stream(constants).anyMatch(RowNumbers.class::isInstance)) {
        request = request.add(ROW_INDEX, DataTypes.LongType);
      }
      FilterPredicate search =
          new ParquetSearch(schema, stored.unchanged(), settings.filters().filters()).predicate();
      VectorizedParquetRecordReader reader =
          new VectorizedParquetRecordReader(
              null, NO_REBASE, "UTC", NO_REBASE, "UTC", false, settings.batchRows());
      // Neither is the footer read again, nor the file opened again.
      ParquetOpening.open(
          reader,
          range,
          new TaskAttemptContextImpl(confOf(conf, request, search), new TaskAttemptID()),
          input,
          stream,
          footer);
      reader.initBatch(new StructType(), InternalRow.empty());
      reader.enableReturningBatches();
      return new ParquetFileReader(reader, stored, constants, settings.batchRows());
    } catch (InterruptedException stopped) {
      stream.close();
      Thread.currentThread().interrupt();
      throw new java.io.InterruptedIOException("interrupted while opening " + path);
    } catch (IOException | RuntimeException | OutOfMemoryError failure) {
      stream.close();
      throw failure;
    }
  }

  private static JobConf confOf(Configuration conf, StructType request, FilterPredicate search) {
    // As a JobConf, which the reader does not copy once more.
    JobConf own = new JobConf(conf);
    own.set(ParquetInputFormat.READ_SUPPORT_CLASS, ParquetReadSupport.class.getName());
    own.set(ParquetReadSupport$.MODULE$.SPARK_ROW_REQUESTED_SCHEMA(), request.json());
    own.set(SQLConf.SESSION_LOCAL_TIMEZONE().key(), "UTC");
    own.setBoolean(SQLConf.CASE_SENSITIVE().key(), true);
    own.setBoolean(SQLConf.NESTED_SCHEMA_PRUNING_ENABLED().key(), true);
    own.setBoolean(SQLConf.PARQUET_BINARY_AS_STRING().key(), false);
    own.setBoolean(SQLConf.PARQUET_INT96_AS_TIMESTAMP().key(), true);
    own.setBoolean(SQLConf.PARQUET_INFER_TIMESTAMP_NTZ_ENABLED().key(), true);
    own.setBoolean(SQLConf.PARQUET_FIELD_ID_READ_ENABLED().key(), false);
    own.setBoolean(SQLConf.LEGACY_PARQUET_NANOS_AS_LONG().key(), false);
    if (search != null) {
      ParquetInputFormat.setFilterPredicate(own, search);
    }
    return own;
  }

  @Override
  public boolean nextBatch() throws IOException {
    if (output == null) {
      output =
          new ColumnarBatch(DataFileReader.arrange(stored.columns(this::column, batchRows), own()));
    }
    boolean found = readBatch();
    output.setNumRows(found ? reader.resultBatch().numRows() : 0);
    return found;
  }

  /** Reads the next rows into the reader's own vectors, and those of changed types out of them. */
  private boolean readBatch() throws IOException {
    if (!reader.nextBatch()) {
      return false;
    }
    stored.cast(this::column, reader.resultBatch().numRows());
    return true;
  }

  private ColumnVector column(int ordinal) {
    return reader.resultBatch().column(ordinal);
  }

  private ColumnVector[] own() {
    if (!countsRows) {
      return constants;
    }
    return own(reader.resultBatch().column(reader.resultBatch().numCols() - 1));
  }

  private ColumnVector[] own(ColumnVector numbers) {
    return Arrays.stream(constants)
        .map(column -> column instanceof RowNumbers ? numbers : column)
        .toArray(ColumnVector[]::new);
  }

  @Override
  public ColumnarBatch batch() {
    return output;
  }

  @Override
  public Page newPage() {
    return new CopiedPage();
  }

  @Override
  public boolean fill(Page page) throws IOException {
    CopiedPage target = (CopiedPage) page;
    boolean found = nextBatch();
    target.copy(found ? output.numRows() : 0);
    return found;
  }

  @Override
  public void close() throws IOException {
    reader.close();
  }

  /** Rows copied out of the vectors that the reader uses again for each batch. */
  private final class CopiedPage implements Page {
    private final OnHeapColumnVector[] copies;
    private final OnHeapColumnVector numbers =
        new OnHeapColumnVector(countsRows ? batchRows : 0, DataTypes.LongType);
    private final ColumnVector[] columns;
    private int rows;

    CopiedPage() {
      List<OnHeapColumnVector> made = new ArrayList<>();
      for (Columns.Wanted column : stored.wanted()) {
        made.add(new OnHeapColumnVector(batchRows, column.type()));
      }
      copies = made.toArray(OnHeapColumnVector[]::new);
      columns = DataFileReader.arrange(copies, own(numbers));
    }

    void copy(int count) {
      rows = count;
      int next = 0;
      for (int i = 0; i < constants.length; i++) {
        if (constants[i] == null) {
          VectorCopy.copy(output.column(i), copies[next++], count);
        } else if (constants[i] instanceof RowNumbers) {
          VectorCopy.copy(output.column(i), numbers, count);
        }
      }
    }

    @Override
    public ColumnVector[] columns() {
      return columns;
    }

    @Override
    public int rows() {
      return rows;
    }
  }
}

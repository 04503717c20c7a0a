package io.lockgate.spark.read;

import io.lockgate.spark.files.Columns;
import io.lockgate.spark.files.Vectors;
import io.lockgate.spark.files.batches.CastVector;
import io.lockgate.spark.files.batches.RowNumbers;
import io.lockgate.spark.files.batches.Selection;
import io.lockgate.spark.files.io.CachedFiles;
import io.lockgate.spark.files.orc.SelectedRows;
import io.lockgate.spark.integrity.BoundedStripes;
import io.lockgate.spark.integrity.Integrity;
import io.lockgate.spark.integrity.KeyCheck;
import io.lockgate.spark.integrity.VerifyingFiles;
import io.lockgate.spark.keys.LockgateKeys;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TimeZone;
import java.util.function.LongUnaryOperator;
import java.util.function.Supplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgument;
import org.apache.orc.OrcFile;
import org.apache.orc.Reader;
import org.apache.orc.RecordReader;
import org.apache.orc.TypeDescription;
import org.apache.orc.impl.KeyProvider;
import org.apache.orc.impl.RecordReaderImpl;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Reads a range of one ORC file batch by batch, as Spark's columns. */
public final class OrcFileReader implements DataFileReader {
  /** Options of a read: the range, the filters to skip by, and the rows at a time. */
  public record Settings(long start, long length, SearchArguments filters, int batchRows) {}

  /** The owner of the keys that open the file, and the check of its integrity tags. */
  public record Trust(String keyScope, Integrity integrity) {}

  /** Vectors for some rows of the file, and Spark's view of them. */
  private static final class OrcPage implements Page {
    private final VectorizedRowBatch vectors;
    private final Vectors.View[] views;
    private final CastVector[] casts;
    private final RowNumbers numbers;
    private final ColumnVector[] columns;
    private final Selection selection;

    OrcPage(
        VectorizedRowBatch vectors,
        Vectors.View[] views,
        CastVector[] casts,
        ColumnVector[] constants,
        boolean selects) {
      this.vectors = vectors;
      this.views = views;
      this.casts = casts;
      // The counter of rows belongs to one page.
      RowNumbers counter = new RowNumbers();
      ColumnVector[] own =
          Arrays.stream(constants)
              .map(column -> column instanceof RowNumbers ? counter : column)
              .toArray(ColumnVector[]::new);
      ColumnVector[] read = new ColumnVector[views.length];
      Arrays.setAll(read, i -> casts[i] == null ? views[i] : casts[i].output());
      ColumnVector[] all = DataFileReader.arrange(read, own);
      this.selection = selects ? new Selection(all, vectors.getMaxSize()) : null;
      this.columns = selects ? selection.columns() : all;
      this.numbers = counter;
    }

    @Override
    public ColumnVector[] columns() {
      return columns;
    }

    @Override
    public int rows() {
      return vectors.size;
    }

    /** Takes over what was read into the vectors. */
    void show() {
      for (int i = 0; i < views.length; i++) {
        views[i].setRows(rows());
        if (casts[i] != null) {
          casts[i].fill(views[i], rows());
        }
      }
      if (selection != null) {
        selection.select(vectors.selectedInUse ? vectors.selected : null, rows());
      }
    }

    /** Keeps some rows where they are the vectors' own, not picked or changed. */
    boolean keep(int[] rows, int count) {
      boolean isOwn = selection == null && Arrays.stream(casts).allMatch(Objects::isNull);
      if (!isOwn || !SelectedRows.keep(vectors.cols, rows, count)) {
        return false;
      }
      vectors.size = count;
      show();
      return true;
    }
  }

  /** A file, and how it is reached. */
  private record Opened(Path path, FileSystem files) {
    RecordReader rows(Reader reader, Reader.Options options) throws IOException {
      BoundedStripes stripes = BoundedStripes.of(reader, path, files, options);
      try {
        return reader.rows(options.dataReader(stripes));
      } catch (IOException | RuntimeException | OutOfMemoryError failure) {
        stripes.close();
        throw failure;
      }
    }
  }

  private final Reader reader;
  private final RecordReader rows;
  private final SearchedRows sought;
  private final Supplier<OrcPage> pages;
  private OrcPage page;
  private ColumnarBatch output;

  private OrcFileReader(
      Reader reader,
      Columns columns,
      Settings settings,
      LongUnaryOperator toInstant,
      ColumnVector[] constants,
      Opened opened)
      throws IOException {
    this.reader = reader;
    Reader.Options options =
        reader.options().schema(columns.readType()).range(settings.start(), settings.length());
    SearchArgument search = settings.filters().build(columns);
    if (search != null) {
      options.searchArgument(search, columns.readType().getFieldNames().toArray(String[]::new));
    }
    this.sought = sought(columns, settings.filters());
    if (sought != null) {
      options.setRowFilter(sought.columns(), sought).useSelected(true);
    }
    this.rows = opened.rows(reader, options);
    if (sought != null) {
      sought.follow(this::position);
    }
    this.pages =
        () -> {
          VectorizedRowBatch vectors = columns.createBatch(settings.batchRows());
          CastVector[] casts = new CastVector[columns.size()];
          for (int i = 0; i < casts.length; i++) {
            DataType stored = columns.castFrom(i);
            casts[i] =
                stored == null
                    ? null
                    : new CastVector(stored, columns.type(i), settings.batchRows());
          }
          Vectors.View[] views = columns.views(vectors.cols, toInstant);
          return new OrcPage(vectors, views, casts, constants, sought != null);
        };
  }

  /**
   * The rows to decode all columns of. Casts are of whole batches, and fail for what lies where no
   * row was decoded.
   */
  private static SearchedRows sought(Columns columns, SearchArguments filters) {
    boolean casts = false;
    for (int i = 0; i < columns.size(); i++) {
      casts |= columns.castFrom(i) != null;
    }
    SearchedRows found = casts ? null : filters.soughtRows(columns);
    boolean saves =
        found != null
            && Arrays.stream(found.columns()).distinct().count()
                < columns.readType().getChildren().size();
    return saves ? found : null;
  }

  private long position() {
    try {
      return rows.getRowNumber();
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
  }

  /**
   * Opens a file. {@code constants} has an entry for each column of the result: a vector where the
   * value is the same for the whole file, null where the next wanted column goes.
   */
  public static OrcFileReader open(
      Configuration conf,
      SplitSpec.DataFile file,
      List<Columns.Wanted> wanted,
      Map<Integer, String> namesAtWriting,
      Trust trust,
      Settings settings,
      ColumnVector[] constants)
      throws IOException {
    Path path = new Path(file.path());
    KeyProvider keys = LockgateKeys.of(trust.keyScope());
    OrcFile.ReaderOptions options =
        OrcFile.readerOptions(conf)
            .maxLength(file.size())
            .setKeyProvider(keys)
            .useUTCTimestamp(true);
    FileSystem files =
        new VerifyingFiles(
            CachedFiles.over(path.getFileSystem(conf), conf, path, file.size()),
            trust.integrity(),
            keys,
            file.size());
    options.filesystem(files);
    Opened opened = new Opened(path, files);
    Reader reader = null;
    try {
      reader = OrcFile.createReader(path, options);
      // Dates and timestamps are passed on as they lie in the file, as Paimon and Spark do; no
      // calendar is converted.
      options.convertToProlepticGregorian(reader.writerUsedProlepticGregorian());
      Columns columns = Columns.map(reader.getSchema(), wanted, namesAtWriting);
      KeyCheck.verify(path, reader, columns);
      LongUnaryOperator toInstant = null;
      if (columns.localTimestamps()) {
        String zone = writerZone(reader, opened);
        if (zone.equals(TimeZone.getDefault().getID()) && !columns.wallClocks()) {
          // The writer's zone is ours: ORC then keeps instants exact, also in the hour that occurs
          // twice.
          reader.close();
          reader = OrcFile.createReader(path, options.useUTCTimestamp(false));
        } else {
          toInstant = toInstant(ZoneId.of(zone, ZoneId.SHORT_IDS));
        }
      }
      return new OrcFileReader(reader, columns, settings, toInstant, constants, opened);
    } catch (IOException | RuntimeException | OutOfMemoryError failure) {
      if (reader != null) {
        reader.close();
      }
      throw failure;
    }
  }

  private static String writerZone(Reader reader, Opened opened) throws IOException {
    if (reader.getStripes().isEmpty()) {
      return "UTC";
    }
    boolean[] nothing = new boolean[reader.getSchema().getMaximumId() + 1];
    try (RecordReader rows = opened.rows(reader, reader.options().include(nothing))) {
      String zone =
          ((RecordReaderImpl) rows)
              .readStripeFooter(reader.getStripes().get(0))
              .getWriterTimezone();
      return zone.isEmpty() ? TimeZone.getDefault().getID() : zone;
    }
  }

  /**
   * Reads a wall clock, in microseconds as if UTC, as the instant it meant in the writer's zone.
   */
  private static LongUnaryOperator toInstant(ZoneId zone) {
    if (zone.getRules().isFixedOffset()) {
      long shift =
          zone.getRules().getOffset(java.time.Instant.EPOCH).getTotalSeconds() * 1_000_000L;
      return micros -> micros - shift;
    }
    return micros -> {
      long seconds = Math.floorDiv(micros, 1_000_000L);
      long fraction = Math.floorMod(micros, 1_000_000L);
      LocalDateTime wall = LocalDateTime.ofEpochSecond(seconds, 0, ZoneOffset.UTC);
      return wall.atZone(zone).toEpochSecond() * 1_000_000L + fraction;
    };
  }

  @Override
  public Page newPage() {
    return pages.get();
  }

  /** Fills {@link #batch()} with the next rows; false at the end. */
  @Override
  public boolean nextBatch() throws IOException {
    if (page == null) {
      page = pages.get();
      output = new ColumnarBatch(page.columns());
    }
    boolean found = fill(page);
    output.setNumRows(page.rows());
    return found;
  }

  @Override
  public boolean keep(int[] kept, int count) {
    return page.keep(kept, count);
  }

  @Override
  public boolean fill(Page page) throws IOException {
    OrcPage target = (OrcPage) page;
    // Rows that filters skip lie before this number: the reader stands at the next row it wants.
    long first = rows.getRowNumber();
    rows.nextBatch(target.vectors);
    target.show();
    target.numbers.startAt(sought == null ? first : sought.first());
    return target.rows() > 0;
  }

  @Override
  public ColumnarBatch batch() {
    return output;
  }

  TypeDescription schema() {
    return reader.getSchema();
  }

  @Override
  public void close() throws IOException {
    rows.close();
    reader.close();
  }
}

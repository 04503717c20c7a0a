package io.lockgate.spark.read;

import io.lockgate.spark.files.Columns;
import io.lockgate.spark.files.DeletedRows;
import io.lockgate.spark.files.FileColumns;
import io.lockgate.spark.files.batches.BatchSource;
import io.lockgate.spark.files.batches.RowNumbers;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.vectorized.ColumnVectorUtils;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.SerializableConfiguration;

/** Makes the readers of one scan on the executors. */
final class ScanReaders implements PartitionReaderFactory {
  private final ScanSpec spec;
  private final Broadcast<SerializableConfiguration> hadoop;
  private final Filter[] filters;
  private final Filter[] late;
  private final int batchRows;

  ScanReaders(
      ScanSpec spec,
      Broadcast<SerializableConfiguration> hadoop,
      Filter[] filters,
      Filter[] late,
      int batchRows) {
    this.spec = spec;
    this.hadoop = hadoop;
    this.filters = filters.clone();
    this.late = late.clone();
    this.batchRows = batchRows;
  }

  @Override
  public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }

  @Override
  public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
    return new Batches(((LockgatePartition) partition).splits().iterator());
  }

  @Override
  public PartitionReader<InternalRow> createReader(InputPartition partition) {
    throw new UnsupportedOperationException("all files are read as columns");
  }

  Configuration conf() {
    return hadoop.value().value();
  }

  ScanSpec spec() {
    return spec;
  }

  /** One file of a split, or a range of it, with the scan's columns. */
  private DataFileReader raw(SplitSpec split) throws IOException {
    SearchArguments search = new SearchArguments(filters, late, spec.readSchema());
    OrcFileReader.Settings settings =
        new OrcFileReader.Settings(split.start(), split.length(), search, batchRows);
    return open(split.files().get(0), split, settings, List.of());
  }

  /**
   * Opens a file for the columns {@code before} and then the scan's own; partition columns are
   * constants.
   */
  DataFileReader open(
      SplitSpec.DataFile file,
      SplitSpec split,
      OrcFileReader.Settings settings,
      List<Columns.Wanted> before)
      throws IOException {
    List<Columns.Wanted> wanted = new ArrayList<>(before);
    StructField[] fields = spec.readSchema().fields();
    ColumnVector[] constants = new ColumnVector[before.size() + fields.length];
    for (int i = 0; i < fields.length; i++) {
      String name = fields[i].name();
      if (split.partition().containsKey(name)) {
        constants[before.size() + i] = constant(fields[i], split.partition());
      } else if (spec.isOfFile(name)) {
        if (FileColumns.isStored(name)) {
          wanted.add(new Columns.Wanted(name, null, fields[i].dataType()));
        } else {
          constants[before.size() + i] = ofFile(fields[i], file);
        }
      } else {
        wanted.add(
            new Columns.Wanted(name, spec.fieldId(name), fields[i].dataType(), spec.inside(name)));
      }
    }
    if (file.deleted() == null) {
      return named(file, wanted, constants, settings);
    }
    DeletedRows.Location vector = file.deleted();
    DeletedRows deleted =
        NamedFailures.named(
            new NamedFailures.Origin(spec.table(), "index file", vector.path()),
            () -> DeletedRows.read(conf(), vector));
    ColumnVector[] numbered = Arrays.copyOf(constants, constants.length + 1);
    numbered[constants.length] = new RowNumbers();
    return new LiveRows(named(file, wanted, numbered, settings), deleted, batchRows);
  }

  private DataFileReader named(
      SplitSpec.DataFile file,
      List<Columns.Wanted> wanted,
      ColumnVector[] constants,
      OrcFileReader.Settings settings)
      throws IOException {
    return NamedFailures.open(
        new NamedFailures.Origin(spec.table(), "data file", file.path()),
        () -> open(file, wanted, constants, settings));
  }

  private DataFileReader open(
      SplitSpec.DataFile file,
      List<Columns.Wanted> wanted,
      ColumnVector[] constants,
      OrcFileReader.Settings settings)
      throws IOException {
    FileLayout layout = FileLayout.of(wanted, spec, file.schemaId());
    String name = file.path().toLowerCase(Locale.ROOT);
    if (name.endsWith(ParquetFileReader.SUFFIX)) {
      return ParquetFileReader.open(conf(), file, layout, settings, constants);
    }
    if (name.endsWith(AvroFileReader.SUFFIX)) {
      return AvroFileReader.open(conf(), file, layout, settings, constants);
    }
    OrcFileReader.Trust trust = new OrcFileReader.Trust(spec.keyScope(), spec.integrity());
    return OrcFileReader.open(
        conf(), file, wanted, spec.names(file.schemaId()), trust, settings, constants);
  }

  private ColumnVector ofFile(StructField field, SplitSpec.DataFile file) {
    if (field.name().equals(FileColumns.ROW_INDEX)) {
      return new RowNumbers();
    }
    Serializable value =
        switch (field.name()) {
          case FileColumns.FIRST_ROW_ID -> file.firstRowId();
          case FileColumns.FILE_SEQUENCE -> file.sequence();
          default -> UTF8String.fromString(file.path());
        };
    Map<String, Serializable> one = new HashMap<>();
    one.put(field.name(), value);
    return constant(field, one);
  }

  private ConstantColumnVector constant(StructField field, Map<String, Serializable> partition) {
    ConstantColumnVector vector = new ConstantColumnVector(batchRows, field.dataType());
    ColumnVectorUtils.populate(
        vector, new GenericInternalRow(new Object[] {partition.get(field.name())}), 0);
    return vector;
  }

  /**
   * The batches of a partition's splits, one after the other, merged by key where a split asks for
   * it.
   */
  private final class Batches implements PartitionReader<ColumnarBatch> {
    private final Iterator<SplitSpec> splits;
    private BatchSource source;

    Batches(Iterator<SplitSpec> splits) {
      this.splits = splits;
    }

    @Override
    public boolean next() throws IOException {
      while (source == null || !source.nextBatch()) {
        close();
        if (!splits.hasNext()) {
          return false;
        }
        SplitSpec split = splits.next();
        source = split.merge() ? MergeSource.open(ScanReaders.this, split, batchRows) : raw(split);
      }
      return true;
    }

    @Override
    public ColumnarBatch get() {
      return source.batch();
    }

    @Override
    public void close() throws IOException {
      if (source != null) {
        source.close();
        source = null;
      }
    }
  }
}

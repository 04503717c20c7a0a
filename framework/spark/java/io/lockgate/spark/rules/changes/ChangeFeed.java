package io.lockgate.spark.rules.changes;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.files.FileColumns;
import io.lockgate.spark.files.batches.MappedBatches;
import io.lockgate.spark.messages.ChangesRequest;
import io.lockgate.spark.messages.Operations;
import io.lockgate.spark.messages.PlanAnswer;
import io.lockgate.spark.read.OrcScans;
import io.lockgate.spark.read.ScanSpec;
import io.lockgate.spark.read.SplitPacker;
import io.lockgate.spark.scan.LoadedTable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** The changes of a range of snapshots as rows, with the kind, number and time of each change. */
final class ChangeFeed implements Scan, Batch {
  static final String TYPE = "_change_type";
  static final String VERSION = FileColumns.COMMIT_VERSION;
  static final String TIMESTAMP = FileColumns.COMMIT_TIMESTAMP;

  private final LoadedTable table;
  private final ChangesRequest request;
  private final StructType shown;
  private final StructType stored;
  private final boolean pairs;
  private PlanAnswer plan;
  private ScanSpec spec;

  private ChangeFeed(LoadedTable table, ChangesRequest request, StructType shown, boolean pairs) {
    this.table = table;
    this.shown = shown;
    this.pairs = pairs;
    List<String> columns = new ArrayList<>();
    StructType read = new StructType();
    for (String name : shown.fieldNames()) {
      if (name.equals(TYPE)) {
        read = read.add(FileColumns.VALUE_KIND, DataTypes.ByteType, true);
      } else {
        read = read.add(shown.apply(name));
      }
      if (table.structType().getFieldIndex(name).isDefined()) {
        columns.add(name);
      }
    }
    this.request = request.withColumns(columns);
    this.stored = read;
  }

  /** The columns of a feed, with the version of each row where Spark pairs rows by it. */
  static StructType columns(LoadedTable table, boolean versioned) {
    StructType columns = table.structType();
    if (versioned) {
      columns = columns.add(FileColumns.SEQUENCE_NUMBER, DataTypes.LongType, false);
    }
    return columns
        .add(TYPE, DataTypes.StringType, false)
        .add(VERSION, DataTypes.LongType, false)
        .add(TIMESTAMP, DataTypes.TimestampType, false);
  }

  /**
   * Builds scans of a range; {@code pairs}: what was updated is shown as a row that is gone and one
   * that is new.
   */
  static final class Builder implements ScanBuilder, SupportsPushDownRequiredColumns {
    private final LoadedTable table;
    private final ChangesRequest request;
    private final boolean pairs;
    private StructType columns;

    Builder(LoadedTable table, ChangesRequest request, StructType columns, boolean pairs) {
      this.table = table;
      this.request = request;
      this.columns = columns;
      this.pairs = pairs;
    }

    @Override
    public void pruneColumns(StructType required) {
      columns = required;
    }

    @Override
    public Scan build() {
      return new ChangeFeed(table, request, columns, pairs);
    }
  }

  @Override
  public StructType readSchema() {
    return shown;
  }

  @Override
  public String description() {
    return "changes of " + table.name() + " after=" + request.after() + " upto=" + request.upto();
  }

  @Override
  public Batch toBatch() {
    return this;
  }

  @Override
  public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
    throw Bridge.failure(
        "a stream of changes reads the table itself: spark.readStream.option('read.changelog',"
            + " 'true').table('"
            + table.name()
            + "')");
  }

  @Override
  public ColumnarSupportMode columnarSupportMode() {
    return ColumnarSupportMode.SUPPORTED;
  }

  private synchronized ScanSpec spec() {
    if (spec == null) {
      plan = Bridge.ask(Operations.CHANGES_PLAN, request);
      spec = ScanSpec.of(table.name(), table.structType(), stored, plan, new Filter[0]);
    }
    return spec;
  }

  @Override
  public InputPartition[] planInputPartitions() {
    return SplitPacker.of(SparkSession.active(), spec(), plan, false).partitions(plan);
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    PartitionReaderFactory readers = OrcScans.readerFactory(SparkSession.active(), spec());
    int kind = Arrays.asList(shown.fieldNames()).indexOf(TYPE);
    return kind < 0 ? readers : new MappedBatches(readers, new ChangeTypes(kind, pairs));
  }
}

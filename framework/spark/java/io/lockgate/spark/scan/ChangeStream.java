package io.lockgate.spark.scan;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.files.FileColumns;
import io.lockgate.spark.files.batches.MappedBatches;
import io.lockgate.spark.messages.BatchAnswer;
import io.lockgate.spark.messages.BatchRequest;
import io.lockgate.spark.messages.EndAnswer;
import io.lockgate.spark.messages.MicroBatch;
import io.lockgate.spark.messages.Operations;
import io.lockgate.spark.messages.PlanAnswer;
import io.lockgate.spark.messages.ProgressRequest;
import io.lockgate.spark.messages.SelectiveRequest;
import io.lockgate.spark.messages.StreamEndRequest;
import io.lockgate.spark.messages.StreamRequest;
import io.lockgate.spark.read.OrcScans;
import io.lockgate.spark.read.ScanSpec;
import io.lockgate.spark.read.SplitPacker;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * The changes of a table, batch by batch. Python says where each batch starts and ends and which
 * files it reads; the positions in checkpoints are its own.
 */
final class ChangeStream
    implements MicroBatchStream, SupportsTriggerAvailableNow, ReportsSourceMetrics {
  /** A position, in the words of Python, which alone reads them. */
  private static final class Position extends Offset {
    private final String text;

    Position(String text) {
      this.text = text;
    }

    @Override
    public String json() {
      return text;
    }
  }

  /** The limits of the options, which Python knows. */
  private enum Limit implements ReadLimit {
    OF_OPTIONS
  }

  private final LoadedTable table;
  private final SelectiveRequest request;
  private final String source;
  private final StructType columns;
  private final StructType shown;
  private Long last;
  private long lastBatch = System.nanoTime();
  private String planned = "";
  private PlanAnswer batch;
  private PartitionReaderFactory readers;
  private long newest;
  private long leftOut;
  private long overwrites;

  ChangeStream(
      LoadedTable table,
      SelectiveRequest request,
      StructType columns,
      StructType shown,
      String checkpointLocation) {
    this.table = table;
    this.columns = columns;
    this.shown = shown;
    this.request = request;
    // The folder of the source: Spark numbers those of a query.
    this.source = checkpointLocation.substring(checkpointLocation.lastIndexOf('/') + 1);
  }

  private StreamRequest question() {
    MicroBatch batch = PlannedBatch.of(SparkSession.active().sparkContext());
    return new StreamRequest(request, table.view() != null, source, batch);
  }

  @Override
  public Offset initialOffset() {
    return new Position(Bridge.ask(Operations.STREAM_START, question()));
  }

  @Override
  public Offset deserializeOffset(String json) {
    return new Position(json);
  }

  @Override
  public ReadLimit getDefaultReadLimit() {
    return Limit.OF_OPTIONS;
  }

  @Override
  public Offset latestOffset() {
    throw new UnsupportedOperationException("a batch ends where its start and its limits say");
  }

  @Override
  public synchronized Offset latestOffset(Offset start, ReadLimit limit) {
    boolean limited = !(limit instanceof ReadAllAvailable);
    Long waited = last == null ? (System.nanoTime() - lastBatch) / 1_000_000 : null;
    EndAnswer answer =
        Bridge.ask(
            Operations.STREAM_END,
            new StreamEndRequest(question(), start.json(), last, limited, waited));
    newest = answer.newest();
    return new Position(answer.end());
  }

  @Override
  public synchronized void prepareForTriggerAvailableNow() {
    last = Bridge.ask(Operations.STREAM_NEWEST, question());
  }

  /** Asked again where a batch is used several times, as by a function of foreachBatch. */
  @Override
  public synchronized InputPartition[] planInputPartitions(Offset start, Offset end) {
    SparkSession session = SparkSession.active();
    BatchAnswer found =
        Bridge.ask(Operations.STREAM_BATCH, new BatchRequest(question(), start.json(), end.json()));
    String key = start.json() + end.json();
    if (!key.equals(planned)) {
      planned = key;
      lastBatch = System.nanoTime();
      leftOut += found.leftOut();
      overwrites += found.overwrites();
    }
    batch = found.plan();
    boolean drops = found.dropsRetracts();
    StructType read =
        drops ? columns.add(FileColumns.VALUE_KIND, DataTypes.ByteType, true) : columns;
    ScanSpec spec = ScanSpec.of(table.name(), table.structType(), read, batch, new Filter[0]);
    PartitionReaderFactory stored = OrcScans.readerFactory(session, spec);
    if (table.view() != null) {
      readers = table.view().showChanges(stored, columns, shown);
    } else {
      readers = drops ? new MappedBatches(stored, new UpsertedRows(columns.length())) : stored;
    }
    return (table.view() != null && table.view().pairs(true)
            ? SplitPacker.ofWholeFiles(session, spec, batch)
            : SplitPacker.of(session, spec, batch, false))
        .partitions(batch);
  }

  @Override
  public synchronized PartitionReaderFactory createReaderFactory() {
    if (readers == null) {
      throw new IllegalStateException("a batch is read before it is planned");
    }
    return readers;
  }

  @Override
  public void commit(Offset end) {
    Bridge.ask(Operations.STREAM_PROGRESS, new ProgressRequest(question(), end.json()));
  }

  @Override
  public void stop() {
    Bridge.ask(Operations.STREAM_STOP, question());
  }

  /** Figures that {@code StreamingQueryProgress} shows of this source, in text. */
  @Override
  public synchronized Map<String, String> metrics(Optional<Offset> latestConsumedOffset) {
    Map<String, String> metrics = new TreeMap<>();
    metrics.put("newestSnapshot", Long.toString(newest));
    if (request.grant() == null) { // else they count rows that a policy may hide
      metrics.put("retractsLeftOut", Long.toString(leftOut));
      metrics.put("overwritesLeftOut", Long.toString(overwrites));
    }
    return metrics;
  }

  @Override
  public String toString() {
    return table.name();
  }
}

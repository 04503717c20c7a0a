package io.lockgate.spark.scan;

import com.fasterxml.jackson.databind.JsonNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Predicates;
import io.lockgate.spark.bridge.TaskFilters;
import io.lockgate.spark.files.FileColumns;
import io.lockgate.spark.messages.JoinedScan;
import io.lockgate.spark.messages.Operations;
import io.lockgate.spark.messages.PlanAnswer;
import io.lockgate.spark.messages.PlanRequest;
import io.lockgate.spark.messages.PushedScan;
import io.lockgate.spark.messages.ScanRequest;
import io.lockgate.spark.messages.SelectiveRequest;
import io.lockgate.spark.messages.SortKeyJson;
import io.lockgate.spark.read.OrcScans;
import io.lockgate.spark.read.ScanSpec;
import io.lockgate.spark.read.SplitPacker;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportPartitioning;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.partitioning.UnknownPartitioning;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/** A scan whose files Python chooses. */
public final class LockgateScan
    implements Batch,
        SupportsReportStatistics,
        SupportsReportPartitioning,
        SupportsRuntimeV2Filtering,
        Reported {
  private static final String SNAPSHOT_SOURCE = "scan.snapshot-source";
  private static final String SPLIT_OPTIONS = "source.split.";

  private final LoadedTable table;
  private final String scanId;
  private final StructType shown;
  private final StructType columns;
  private final RowView view;
  private final Predicate[] offered;
  private final Predicate[] accepted;
  private final boolean wholeFiles;
  private SelectiveRequest request;
  private boolean choosesFiles = true;
  private volatile boolean follows; // a stream, of which nothing is planned before its batches
  private LateFilters late = LateFilters.NONE;
  private PlanAnswer first;
  private PlanAnswer plan;
  private SplitPacker packer;
  private List<String> selective;
  private List<?> asked;
  private DriverRead read;

  LockgateScan(
      LoadedTable table,
      ScanRequest request,
      String scanId,
      StructType columns,
      Predicate[] offered,
      Predicate[] accepted,
      Long limit,
      List<SortKeyJson> order,
      boolean wholeFiles) {
    this.table = table;
    this.scanId = scanId;
    this.shown = columns;
    this.view = table.view();
    this.columns = view == null ? columns : view.stored(columns, table.structType());
    this.offered = offered;
    this.accepted = accepted;
    this.wholeFiles = wholeFiles;
    List<String> names =
        Arrays.stream(this.columns.fieldNames())
            .filter(name -> !FileColumns.has(name, table.structType()))
            .toList();
    PushedScan pushed =
        new PushedScan(
            request,
            Predicates.toJson(accepted),
            List.of(),
            offered.length,
            wholeFiles,
            names,
            limit,
            order);
    this.request = new SelectiveRequest(pushed, List.of());
  }

  @Override
  public String scanId() {
    return scanId;
  }

  /**
   * Returns the plan of Python; asked once, and once more after filters that were only known at run
   * time.
   */
  public synchronized PlanAnswer plan() {
    if (plan == null) {
      // A plugin may choose the snapshot, for each micro-batch one.
      boolean followsBatches = request.options().containsKey(SNAPSHOT_SOURCE);
      plan =
          Bridge.ask(
              Operations.SCAN_PLAN,
              new PlanRequest(
                  request,
                  scanId,
                  late.json(),
                  late.paths(),
                  ColumnEstimates.areWanted(),
                  followsBatches ? PlannedBatch.of(SparkSession.active().sparkContext()) : null));
      if (first == null) {
        first = plan;
      }
    }
    return plan;
  }

  /** The filters that the scan uses. */
  public Predicate[] accepted() {
    return accepted.clone();
  }

  /** Skips files by conditions of Spark. */
  public synchronized void requireConditions(List<JsonNode> conditions) {
    if (!wholeFiles && !conditions.equals(request.conditions())) {
      request = request.withPushedScan(request.pushedScan().withConditions(conditions));
      forget();
    }
  }

  /** Skips files by scans that this one is joined with. */
  public synchronized void requirePartners(List<JoinedScan> joined) {
    if (!wholeFiles && !joined.equals(request.joined())) {
      request = request.withJoined(joined);
      forget();
    }
  }

  private void forget() {
    first = null;
    plan = null;
    packer = null;
  }

  /** The filters that Spark offered to the scan. */
  public Predicate[] offered() {
    return offered.clone();
  }

  public LoadedTable table() {
    return table;
  }

  /**
   * Tells whether the query names the snapshots to read: all options that a read can have do that,
   * but those of splits.
   */
  public boolean timeTravel() {
    boolean named =
        request.options().keySet().stream().anyMatch(key -> !key.startsWith(SPLIT_OPTIONS));
    return named || table.timeTravel();
  }

  /** From now on a missing key is an error: what is read decides what is written. */
  public synchronized void requireStrict() {
    if (!request.strict()) {
      request = strict();
      forget();
    }
  }

  private SelectiveRequest strict() {
    PushedScan pushed = request.pushedScan();
    return request.withPushedScan(pushed.withScanRequest(pushed.scanRequest().withStrict(true)));
  }

  /**
   * Every file that is read is written again, without a query first that finds those with rows to
   * change.
   */
  public void choosesNoFiles() {
    choosesFiles = false;
  }

  /** Raises an error if a key is missing that the rows of this scan need to be what they seem. */
  public synchronized void requireKeys() {
    Bridge.ask(
        Operations.SCAN_PLAN, new PlanRequest(strict(), scanId, List.of(), null, false, null));
  }

  /**
   * Returns what all readers know. It follows the first plan: later ones hold a part of its files.
   */
  private synchronized ScanSpec spec() {
    plan();
    // Of files that are written again all rows are read, wanted or not.
    Predicate[] skipping = wholeFiles ? new Predicate[0] : accepted;
    return ScanSpec.of(table.name(), table.structType(), columns, first, TaskFilters.of(skipping))
        .with(TaskFilters.of(wholeFiles ? skipping : late.lists()));
  }

  /**
   * Tells whether the driver may read this scan: it is small, and belongs neither to a micro-batch
   * nor to a change of rows.
   */
  public synchronized boolean fitsOnDriver() {
    boolean plain =
        !wholeFiles
            && !request.strict()
            && late.equals(LateFilters.NONE)
            && !request.options().containsKey(SNAPSHOT_SOURCE)
            && SparkSession.active().sparkContext().getLocalProperty("streaming.sql.batchId")
                == null;
    return plain && plan().onDriver();
  }

  /**
   * The rows that pass, read once however often the query is planned; null where tasks are to read
   * them.
   */
  public synchronized DriverRead readOnDriver(
      List<org.apache.spark.sql.catalyst.expressions.Expression> conditions,
      List<NamedExpression> wanted,
      Seq<Attribute> output) {
    List<?> question = List.of(conditions, wanted, output);
    if (!question.equals(asked)) {
      asked = question;
      read = DriverRead.of(this, conditions, wanted, output).orElse(null);
    }
    return read;
  }

  @Override
  public StructType readSchema() {
    return shown;
  }

  @Override
  public String description() {
    return table.name()
        + " snapshot="
        + request.snapshotId()
        + " accepted="
        + Arrays.toString(accepted)
        + (request.limit() == null ? "" : " limit=" + request.limit())
        + (request.order().isEmpty()
            ? ""
            : " order=" + request.order().stream().map(SortKeyJson::text).toList());
  }

  @Override
  public Batch toBatch() {
    return this;
  }

  @Override
  public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
    follows = true;
    return new ChangeStream(table, request, columns, shown, checkpointLocation);
  }

  @Override
  public ColumnarSupportMode columnarSupportMode() {
    return RowView.columnar(view, follows);
  }

  @Override
  public InputPartition[] planInputPartitions() {
    return packer().partitions(plan());
  }

  private synchronized SplitPacker packer() {
    if (packer == null) {
      ScanSpec spec = spec();
      packer = SplitPacker.of(SparkSession.active(), spec, first, !wholeFiles);
    }
    return packer;
  }

  /**
   * Tells of buckets, so that tables with the same ones can be joined without moving their rows.
   */
  @Override
  public Partitioning outputPartitioning() {
    if (follows || wholeFiles || view != null || table.bucketKey().size() != 1) {
      return new UnknownPartitioning(0); // Spark knows transforms of one column only
    }
    return packer()
        .partitioning(WriteDistribution.partitioning(table), packer().partitions(plan()).length);
  }

  /** All that is to be read, for one reader. */
  InputPartition wholePartition() {
    return OrcScans.wholePartition(spec(), plan());
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    PartitionReaderFactory readers = OrcScans.readerFactory(SparkSession.active(), spec());
    return view == null ? readers : view.show(readers, columns, shown);
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return ScanMetrics.of(table.metrics());
  }

  @Override
  public CustomTaskMetric[] reportDriverMetrics() {
    return follows
        ? new CustomTaskMetric[0]
        : ScanMetrics.values(table.metrics(), plan().metrics());
  }

  @Override
  public Statistics estimateStatistics() {
    PlanAnswer planned = follows ? null : plan();
    return new ColumnEstimates.OfPlan(planned, view == null ? table.structType() : null);
  }

  /** The names of the files that were read, once the query has run. */
  public List<String> fileNames() {
    return plan().splits().stream()
        .flatMap(split -> split.files().stream())
        .map(file -> file.path().substring(file.path().lastIndexOf('/') + 1))
        .toList();
  }

  /** The number of files to read. */
  public int files() {
    return plan().splits().stream().mapToInt(split -> split.files().size()).sum();
  }

  public long snapshotId() {
    return request.snapshotId();
  }

  /**
   * Only columns by whose values files are left out: for others Spark would run subqueries in vain.
   * Spark asks where a join has such a column. Where whole files are written again, it is to find
   * out first which files have rows to change.
   */
  @Override
  public NamedReference[] filterAttributes() {
    if (wholeFiles) {
      return LoadedTable.references(choosesFiles ? List.of(FileColumns.PATH) : List.of());
    }
    return LoadedTable.references(view == null ? selective() : List.of());
  }

  private synchronized List<String> selective() {
    if (selective == null) {
      selective = Bridge.ask(Operations.SCAN_SELECTIVE, request);
    }
    return selective;
  }

  @Override
  public synchronized void filter(Predicate[] predicates) {
    late = LateFilters.of(predicates, wholeFiles);
    plan = null;
  }

  /** All that decides which rows are read. */
  public synchronized ScanState state() {
    return ScanState.of(request, shown, wholeFiles, late);
  }

  /** Tells whether the rows may outlive their query, as Python decided. */
  public boolean isKeepable() {
    return !follows && plan().keepable();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof LockgateScan scan && scan.compared().equals(compared());
  }

  @Override
  public int hashCode() {
    return compared().hashCode();
  }

  private synchronized ScanState compared() {
    return ScanState.of(request, shown, wholeFiles, late);
  }
}

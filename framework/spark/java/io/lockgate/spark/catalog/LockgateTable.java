package io.lockgate.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Predicates;
import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.messages.DeleteRequest;
import io.lockgate.spark.messages.DropPartitionsRequest;
import io.lockgate.spark.messages.ListPartitionsRequest;
import io.lockgate.spark.messages.MergeColumnsRequest;
import io.lockgate.spark.messages.Operations;
import io.lockgate.spark.messages.RowsJson;
import io.lockgate.spark.messages.TableRequest;
import io.lockgate.spark.messages.TableSpec;
import io.lockgate.spark.scan.LoadedTable;
import io.lockgate.spark.scan.LockgateScanBuilder;
import io.lockgate.spark.write.Committed;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsAtomicPartitionManagement;
import org.apache.spark.sql.connector.catalog.SupportsDeleteV2;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table as Spark sees it: the operations that it supports. */
public abstract class LockgateTable extends LoadedTable
    implements SupportsRead,
        SupportsMetadataColumns,
        SupportsWrite,
        SupportsDeleteV2,
        SupportsRowLevelOperations,
        SupportsAtomicPartitionManagement {
  private volatile Supplier<Table> newest;

  LockgateTable(TableRequest request, TableSpec spec) {
    super(request, spec);
  }

  @Override
  @SuppressWarnings("deprecation") // Spark before 4.1 asks for it
  public StructType schema() {
    return CatalogV2Util.v2ColumnsToStructType(columns());
  }

  @Override
  public Column[] columns() {
    return Values.columns(structType());
  }

  @Override
  public MetadataColumn[] metadataColumns() {
    return FileColumn.of(this);
  }

  @Override
  public Transform[] partitioning() {
    return partitionKeys().stream()
        .map(LoadedTable::quoted)
        .map(Expressions::identity)
        .toArray(Transform[]::new);
  }

  @Override
  public Set<TableCapability> capabilities() {
    return Set.of(
        TableCapability.BATCH_READ,
        TableCapability.MICRO_BATCH_READ,
        TableCapability.BATCH_WRITE,
        TableCapability.STREAMING_WRITE,
        TableCapability.TRUNCATE,
        TableCapability.OVERWRITE_BY_FILTER,
        TableCapability.OVERWRITE_DYNAMIC);
  }

  /**
   * From now on a query on this state reads the newest one: Spark's cache had its rows, which a
   * commit has changed, and a DataFrame that was cached still names it.
   */
  void readNewest(Supplier<Table> newest) {
    if (!timeTravel() && request().privileges().isEmpty()) {
      this.newest = newest;
    }
  }

  @Override
  public final ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    Table found = newest == null ? this : newest.get();
    return found instanceof LockgateTable table
            && Set.of(table.structType().fields()).containsAll(List.of(structType().fields()))
        ? table.scanBuilder(options)
        : scanBuilder(options);
  }

  ScanBuilder scanBuilder(CaseInsensitiveStringMap options) {
    return new LockgateScanBuilder(this, scanRequest(options));
  }

  /**
   * A scan of rows to change. It is strict, because rows are written from what it reads, and a mask
   * must not be stored as a value.
   */
  ScanBuilder changeScan(CaseInsensitiveStringMap options) {
    return new LockgateScanBuilder(
        this, scanRequest(options).withStrict(true).withChangesRows(true));
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    LockgateTable table = WriteJob.mergesSchema(info) ? merged(info) : this;
    return new LockgateWriteBuilder(table, info);
  }

  /** This table, once it has the columns of the rows that a stream writes. */
  private LockgateTable merged(LogicalWriteInfo info) {
    TableRequest any = request(info.options()).withSchemaId(null);
    TableSpec spec =
        Bridge.ask(
            Operations.TABLE_MERGE_COLUMNS,
            new MergeColumnsRequest(any, Values.typeToJson(info.schema())));
    return this instanceof PrimaryKeyTable
        ? new PrimaryKeyTable(request(), spec)
        : new AppendTable(request(), spec);
  }

  // --- deletes that need only metadata ---

  @Override
  public boolean canDeleteWhere(Predicate[] predicates) {
    return Bridge.ask(
        Operations.DELETE_CAN, new DeleteRequest(request(), Predicates.toJson(predicates)));
  }

  @Override
  public void deleteWhere(Predicate[] predicates) {
    DeleteRequest delete = new DeleteRequest(request(), Predicates.toJson(predicates));
    Committed.note(request(), Bridge.ask(Operations.DELETE_WHERE, delete));
    CachedPlans.refreshTable(request());
  }

  @Override
  public boolean truncateTable() {
    deleteWhere(new Predicate[0]);
    return true;
  }

  // --- partitions: they are there as long as they have rows ---

  @Override
  public StructType partitionSchema() {
    return new StructType(
        partitionKeys().stream().map(structType()::apply).toArray(StructField[]::new));
  }

  @Override
  public InternalRow[] listPartitionIdentifiers(String[] names, InternalRow values) {
    Map<String, JsonNode> where = new LinkedHashMap<>();
    for (int i = 0; i < names.length; i++) {
      DataType type = structType().apply(names[i]).dataType();
      where.put(names[i], Values.toJson(values.get(i, type), type));
    }
    RowsJson found =
        Bridge.ask(Operations.PARTITION_LIST, new ListPartitionsRequest(request(), where));
    return Values.rowsFromJson(found.rows(), partitionSchema());
  }

  @Override
  public boolean dropPartitions(InternalRow[] partitions) {
    StructType columns = partitionSchema();
    List<List<JsonNode>> rows = new ArrayList<>();
    for (InternalRow partition : partitions) {
      List<JsonNode> row = new ArrayList<>();
      for (int i = 0; i < columns.length(); i++) {
        DataType type = columns.apply(i).dataType();
        row.add(Values.toJson(partition.get(i, type), type));
      }
      rows.add(row);
    }
    boolean dropped =
        Bridge.ask(Operations.PARTITION_DROP, new DropPartitionsRequest(request(), rows));
    CachedPlans.refreshTable(request());
    return dropped;
  }

  @Override
  public boolean truncatePartition(InternalRow partition) {
    return dropPartitions(new InternalRow[] {partition});
  }

  @Override
  public boolean truncatePartitions(InternalRow[] partitions) {
    return dropPartitions(partitions);
  }

  @Override
  public void createPartitions(InternalRow[] partitions, Map<String, String>[] properties) {
    throw Bridge.failure(
        "A partition of " + name() + " exists as soon as it has rows: INSERT them");
  }

  @Override
  public void replacePartitionMetadata(InternalRow partition, Map<String, String> properties) {
    throw Bridge.failure("Partitions of " + name() + " have no properties");
  }

  @Override
  public Map<String, String> loadPartitionMetadata(InternalRow partition) {
    return Map.of();
  }

  // --- identity: a plan of the same state is the same plan, so that Spark's cache answers it ---

  private List<Object> state() {
    return Arrays.asList(
        getClass(),
        name(),
        id(),
        version(),
        snapshotCommit(),
        timeTravel(),
        structType(),
        request().schemaId());
  }

  @Override
  public boolean equals(Object other) {
    return this == other
        || other instanceof LockgateTable table
            && id() != null
            && snapshotCommit() != null
            && state().equals(table.state());
  }

  @Override
  public int hashCode() {
    return Objects.hash(name(), id(), version());
  }
}

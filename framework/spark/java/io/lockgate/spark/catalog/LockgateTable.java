package io.lockgate.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Predicates;
import io.lockgate.spark.bridge.Values;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsAtomicPartitionManagement;
import org.apache.spark.sql.connector.catalog.SupportsDeleteV2;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table as Spark sees it, at the snapshot that was the newest when it was loaded. */
public abstract class LockgateTable
    implements SupportsRead,
        SupportsMetadataColumns,
        SupportsWrite,
        SupportsDeleteV2,
        SupportsRowLevelOperations,
        SupportsAtomicPartitionManagement {
  private final ObjectNode request;
  private final JsonNode spec;
  private final StructType schema;
  private volatile Long basis;
  private volatile String basisCommit;

  LockgateTable(ObjectNode request, JsonNode spec) {
    this.request = request;
    // What is asked later is about this very table, under the schema that the query is analysed
    // with.
    if (spec.hasNonNull("table_id")) {
      request.set("table_id", spec.get("table_id"));
      request.set("schema_id", spec.get("schema_id"));
    }
    this.spec = spec;
    this.schema = Values.schemaFromJson(spec.get("schema"));
  }

  /** A request about this table, to be completed. */
  public ObjectNode request() {
    return request.deepCopy();
  }

  public ObjectNode request(CaseInsensitiveStringMap options) {
    ObjectNode out = request();
    out.set("options", Bridge.JSON.valueToTree(options.asCaseSensitiveMap()));
    return timeTravel() ? out.put("time_travel", true) : out;
  }

  /**
   * Notes that rows are written under a later schema of the same columns, which encrypts more of
   * them.
   */
  public void writtenUnder(long schema) {
    request.put("schema_id", schema);
  }

  private List<String> names(String property) {
    List<String> out = new ArrayList<>();
    spec.path(property).forEach(name -> out.add(name.asText()));
    return out;
  }

  public List<String> partitionKeys() {
    return names("partitioning");
  }

  List<String> primaryKey() {
    return names("primary_key");
  }

  /** Why a statement (DELETE, UPDATE, MERGE) would not do what it says; null where it does. */
  String whyRefused(String statement) {
    JsonNode reason = spec.path("refused_statements").path(statement);
    return reason.isTextual() ? reason.asText() : null;
  }

  List<String> sequenceFields() {
    return names("sequence_fields");
  }

  /** The metrics of scans of this table, each with its name and description. */
  JsonNode metrics() {
    return spec.get("scan_metrics");
  }

  /** Tells whether rows are deleted where they lie, by deletion vectors. */
  boolean marksRows() {
    return spec.path("marks_rows").asBoolean();
  }

  /** The columns whose values choose the bucket; empty if the table has no fixed buckets. */
  List<String> bucketKey() {
    List<String> out = new ArrayList<>();
    spec.path("bucket").path("columns").forEach(name -> out.add(name.asText()));
    return out;
  }

  /** The number of buckets, or 0 if the table has no fixed buckets. */
  int bucketCount() {
    return spec.path("bucket").path("count").asInt(0);
  }

  /** The bytes at which a writer starts a new file. */
  long targetFileSize() {
    return spec.path("target_file_size").asLong();
  }

  StructType structType() {
    return schema;
  }

  /** The snapshot to read: 0 is the state before the first snapshot. */
  long snapshotId() {
    return spec.path("snapshot_id").asLong(0);
  }

  /** Tells whether a query asked for this state of the table, instead of getting the newest. */
  boolean timeTravel() {
    return spec.path("time_travel").asBoolean();
  }

  /**
   * The snapshot that rows written to this table were computed from; null if they do not depend on
   * the table.
   */
  Long basis() {
    return basis;
  }

  /** What tells that snapshot from another one that gets its number after a rollback. */
  String basisCommit() {
    return basisCommit;
  }

  /**
   * What tells the snapshot to read from another one of its number; null where there is none yet.
   */
  String snapshotCommit() {
    return spec.path("commit_id").asText(null);
  }

  /**
   * Notes that rows to write are computed from this very table as it was when {@code read} was
   * loaded; the oldest counts.
   */
  public void computedFrom(LockgateTable read) {
    if (basis == null || read.snapshotId() < basis) {
      basis = read.snapshotId();
      basisCommit = read.snapshotCommit();
    }
  }

  static NamedReference[] references(List<String> columns) {
    // FieldReference parses its argument, so a name with a dot or a space must be quoted.
    return columns.stream()
        .map(LockgateTable::quoted)
        .map(Expressions::column)
        .toArray(NamedReference[]::new);
  }

  private static String quoted(String column) {
    return "`" + column.replace("`", "``") + "`";
  }

  @Override
  public String name() {
    return spec.get("name").asText();
  }

  // Spark 4.1 and newer compare these two to notice that a table changed under a query.
  public String id() {
    return spec.path("table_id").asText(null);
  }

  /** The tables whose rows decide what is written here, if a query reads them. */
  public Set<String> ids() {
    return id() == null ? Set.of() : Set.of(id());
  }

  public String version() {
    return Long.toString(snapshotId());
  }

  @Override
  public Column[] columns() {
    return Values.columns(schema);
  }

  @Override
  public MetadataColumn[] metadataColumns() {
    return FileColumn.of(this);
  }

  @Override
  public Transform[] partitioning() {
    return partitionKeys().stream()
        .map(LockgateTable::quoted)
        .map(Expressions::identity)
        .toArray(Transform[]::new);
  }

  @Override
  public Map<String, String> properties() {
    Map<String, String> out = new HashMap<>();
    spec.path("properties")
        .properties()
        .forEach(entry -> out.put(entry.getKey(), entry.getValue().asText()));
    return out;
  }

  @Override
  public Set<TableCapability> capabilities() {
    return Set.of(
        TableCapability.BATCH_READ,
        TableCapability.BATCH_WRITE,
        TableCapability.STREAMING_WRITE,
        TableCapability.TRUNCATE,
        TableCapability.OVERWRITE_BY_FILTER,
        TableCapability.OVERWRITE_DYNAMIC);
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new LockgateScanBuilder(this, request(options), false);
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new LockgateWriteBuilder(this, info);
  }

  // --- deletes that need only metadata ---

  @Override
  public boolean canDeleteWhere(Predicate[] predicates) {
    ObjectNode ask = request();
    ask.set("filters", Predicates.toJson(predicates));
    return Bridge.ask("delete.can", ask).asBoolean();
  }

  @Override
  public void deleteWhere(Predicate[] predicates) {
    ObjectNode ask = request();
    ask.set("filters", Predicates.toJson(predicates));
    Bridge.ask("delete.where", ask);
  }

  @Override
  public boolean truncateTable() {
    deleteWhere(new Predicate[0]);
    return true;
  }

  // --- partitions: they are there as long as they have rows ---

  @Override
  public StructType partitionSchema() {
    return new StructType(partitionKeys().stream().map(schema::apply).toArray(StructField[]::new));
  }

  @Override
  public InternalRow[] listPartitionIdentifiers(String[] names, InternalRow values) {
    ObjectNode ask = request();
    ObjectNode where = ask.putObject("where");
    for (int i = 0; i < names.length; i++) {
      DataType type = schema.apply(names[i]).dataType();
      where.set(names[i], Values.toJson(values.get(i, type), type));
    }
    return Values.rowsFromJson(Bridge.ask("partition.list", ask).get("rows"), partitionSchema());
  }

  @Override
  public boolean dropPartitions(InternalRow[] partitions) {
    StructType columns = partitionSchema();
    ObjectNode ask = request();
    ArrayNode rows = ask.putArray("partitions");
    for (InternalRow partition : partitions) {
      ArrayNode row = rows.addArray();
      for (int i = 0; i < columns.length(); i++) {
        DataType type = columns.apply(i).dataType();
        row.add(Values.toJson(partition.get(i, type), type));
      }
    }
    return Bridge.ask("partition.drop", ask).asBoolean();
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
        "A partition of " + name() + " is there as soon as it has rows: INSERT them");
  }

  @Override
  public void replacePartitionMetadata(InternalRow partition, Map<String, String> properties) {
    throw Bridge.failure("Partitions of " + name() + " have no properties");
  }

  @Override
  public Map<String, String> loadPartitionMetadata(InternalRow partition) {
    return Map.of();
  }

  @Override
  public String toString() {
    return name();
  }
}

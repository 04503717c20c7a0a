package io.lockgate.spark.scan;

import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.enforcement.parts.StatementText;
import io.lockgate.spark.messages.FigureName;
import io.lockgate.spark.messages.ScanRequest;
import io.lockgate.spark.messages.TableRequest;
import io.lockgate.spark.messages.TableSpec;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table as Python described it, at the snapshot that was the newest when it was loaded. */
public abstract class LoadedTable {
  /**
   * The option of a relation with the grant by which its stored rows are read. An option, since
   * Spark loads the tables of a query again.
   */
  public static final String GRANT = "lockgate.grant";

  /**
   * The option of a relation with a word for the rights of its reader, where it is asked for rows
   * under them only: no cache of Spark's then answers a reader with other rights.
   */
  public static final String RIGHTS = "lockgate.rights";

  private final TableSpec spec;
  private final StructType schema;
  private volatile TableRequest request;
  private volatile Long baseSnapshot;
  private volatile String baseCommit;

  protected LoadedTable(TableRequest request, TableSpec spec) {
    // Later requests are about this very table, under the schema that the query is analysed
    // with.
    this.request = request.withTableId(spec.tableId()).withSchemaId(spec.schemaId());
    this.spec = spec;
    this.schema = Values.schemaFromJson(spec.schema());
  }

  /** A request about this table. */
  public TableRequest request() {
    return request;
  }

  public TableRequest request(CaseInsensitiveStringMap options) {
    return request.withOptions(given(options, request, tableName()));
  }

  /** The name by which a statement calls this table. */
  protected String tableName() {
    return request.name();
  }

  /** The options that a user gave of a table that a statement calls {@code name}. */
  public static Map<String, String> given(
      CaseInsensitiveStringMap options, TableRequest request, String name) {
    Map<String, String> given = new HashMap<>(options.asCaseSensitiveMap());
    given.keySet().removeIf(key -> GRANT.equalsIgnoreCase(key) || RIGHTS.equalsIgnoreCase(key));
    String[] namespace = request.namespace().toArray(String[]::new);
    TableAddress address = new TableAddress(request.catalogName(), Identifier.of(namespace, name));
    if (address.isNamedBy(options)) {
      given.keySet().removeIf(TableAddress.OPTION::equalsIgnoreCase);
    }
    return given;
  }

  /** A request to scan this table, as one that only reads. */
  public ScanRequest scanRequest(CaseInsensitiveStringMap options) {
    return new ScanRequest(
        request(options),
        snapshotId(),
        timeTravel(),
        false,
        false,
        options.get(GRANT),
        StatementText.optimized());
  }

  /**
   * Notes that rows are written under a later schema of the same columns, which encrypts more of
   * them.
   */
  public void writtenUnder(long schema) {
    request = request.withSchemaId(schema);
  }

  public List<String> partitionKeys() {
    return spec.partitioning();
  }

  public List<String> primaryKey() {
    return spec.primaryKey();
  }

  /**
   * Returns why a statement (DELETE, UPDATE, MERGE) would not do what it says; null where it does.
   */
  public String whyRefused(String statement) {
    return spec.refusedStatements().get(statement);
  }

  public List<String> sequenceFields() {
    return spec.sequenceFields();
  }

  /** The columns by which new rows are ordered; none in tables with a primary key. */
  List<String> clustering() {
    return spec.clustering();
  }

  /** The metrics of scans of this table, each with its name and description. */
  List<FigureName> metrics() {
    return spec.scanMetrics();
  }

  /** Returns how rows are shown; null where they are shown as they are. */
  public RowView view() {
    return null;
  }

  /** Tells whether the table's own options ask for the difference of two of its states. */
  public boolean comparesStates() {
    return spec.comparesStates();
  }

  /** Tells whether rows are deleted where they lie, by deletion vectors. */
  public boolean marksRows() {
    return spec.marksRows();
  }

  /** The columns whose values choose the bucket; empty if the table has no fixed buckets. */
  public List<String> bucketKey() {
    return spec.bucket() == null ? List.of() : spec.bucket().columns();
  }

  /** The number of buckets, or 0 if the table has no fixed buckets. */
  public int bucketCount() {
    return spec.bucket() == null ? 0 : Math.toIntExact(spec.bucket().count());
  }

  /** The bytes at which a writer starts a new file. */
  public long targetFileSize() {
    return spec.targetFileSize();
  }

  public StructType structType() {
    return schema;
  }

  /** The snapshot to read: 0 is the state before the first snapshot. */
  public long snapshotId() {
    return spec.snapshotId();
  }

  /** Tells whether a query asked for this state of the table, instead of getting the newest. */
  public boolean timeTravel() {
    return spec.timeTravel();
  }

  /**
   * The snapshot that rows written to this table were computed from; null if they do not depend on
   * the table.
   */
  public Long baseSnapshot() {
    return baseSnapshot;
  }

  /**
   * Returns a mark that differs from that of another snapshot with its number, after a rollback.
   */
  public String baseCommit() {
    return baseCommit;
  }

  /**
   * Returns the mark of the snapshot to read, which differs from that of another with its number;
   * null if there is none yet.
   */
  public String snapshotCommit() {
    return spec.commitId();
  }

  /**
   * Notes that rows to write are computed from this very table as it was when {@code read} was
   * loaded; the oldest counts.
   */
  public void computedFrom(LoadedTable read) {
    if (baseSnapshot == null || read.snapshotId() < baseSnapshot) {
      baseSnapshot = read.snapshotId();
      baseCommit = read.snapshotCommit();
    }
  }

  public static NamedReference[] references(List<String> columns) {
    // FieldReference parses its argument, so a name with a dot or a space must be quoted.
    return columns.stream()
        .map(LoadedTable::quoted)
        .map(Expressions::column)
        .toArray(NamedReference[]::new);
  }

  public static String quoted(String column) {
    return "`" + column.replace("`", "``") + "`";
  }

  public String name() {
    return spec.name();
  }

  // Spark 4.1 and newer compare these two to notice that a table changed under a query.
  public String id() {
    return spec.tableId();
  }

  /** The tables whose rows decide what is written here, if a query reads them. */
  public Set<String> ids() {
    return id() == null ? Set.of() : Set.of(id());
  }

  public String version() {
    return Long.toString(snapshotId());
  }

  public Map<String, String> properties() {
    return new HashMap<>(spec.properties());
  }

  @Override
  public String toString() {
    return name();
  }
}

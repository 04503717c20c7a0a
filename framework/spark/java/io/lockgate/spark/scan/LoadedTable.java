package io.lockgate.spark.scan;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.enforcement.parts.StatementText;
import java.util.ArrayList;
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

  private final ObjectNode request;
  private final JsonNode spec;
  private final StructType schema;
  private volatile Long baseSnapshot;
  private volatile String baseCommit;

  protected LoadedTable(ObjectNode request, JsonNode spec) {
    this.request = request;
    // Later requests are about this very table, under the schema that the query is analysed
    // with.
    request.set("table_id", spec.get("table_id"));
    request.set("schema_id", spec.get("schema_id"));
    this.spec = spec;
    this.schema = Values.schemaFromJson(spec.get("schema"));
  }

  /** A request about this table, to be completed. */
  public ObjectNode request() {
    return request.deepCopy();
  }

  public ObjectNode request(CaseInsensitiveStringMap options) {
    ObjectNode out = request();
    return out.set("options", Bridge.JSON.valueToTree(given(options, out, tableName())));
  }

  /** The name by which a statement calls this table. */
  protected String tableName() {
    return request.get("name").asText();
  }

  /** The options that a user gave of a table that a statement calls {@code name}. */
  public static Map<String, String> given(
      CaseInsensitiveStringMap options, ObjectNode request, String name) {
    Map<String, String> given = new HashMap<>(options.asCaseSensitiveMap());
    given.keySet().removeIf(key -> GRANT.equalsIgnoreCase(key) || RIGHTS.equalsIgnoreCase(key));
    String[] namespace = Bridge.JSON.convertValue(request.get("namespace"), String[].class);
    TableAddress address =
        new TableAddress(request.get("catalog_name").asText(), Identifier.of(namespace, name));
    if (address.isNamedBy(options)) {
      given.keySet().removeIf(TableAddress.OPTION::equalsIgnoreCase);
    }
    return given;
  }

  /** A request to scan this table, to be completed. */
  public ObjectNode scanRequest(CaseInsensitiveStringMap options) {
    return request(options)
        .put("time_travel", timeTravel())
        .put("changes_rows", false)
        .put("grant", options.get(GRANT))
        .put("statement", StatementText.optimized());
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
    spec.get(property).forEach(name -> out.add(name.asText()));
    return out;
  }

  public List<String> partitionKeys() {
    return names("partitioning");
  }

  public List<String> primaryKey() {
    return names("primary_key");
  }

  /**
   * Returns why a statement (DELETE, UPDATE, MERGE) would not do what it says; null where it does.
   */
  public String whyRefused(String statement) {
    JsonNode reason = spec.get("refused_statements").get(statement);
    return reason == null ? null : reason.asText();
  }

  public List<String> sequenceFields() {
    return names("sequence_fields");
  }

  /** The columns by which new rows are ordered; none in tables with a primary key. */
  List<String> clustering() {
    return names("clustering");
  }

  /** The metrics of scans of this table, each with its name and description. */
  JsonNode metrics() {
    return spec.get("scan_metrics");
  }

  /** Returns how rows are shown; null where they are shown as they are. */
  public RowView view() {
    return null;
  }

  /** Tells whether the table's own options ask for the difference of two of its states. */
  public boolean comparesStates() {
    return spec.get("compares_states").asBoolean();
  }

  /** Tells whether rows are deleted where they lie, by deletion vectors. */
  public boolean marksRows() {
    return spec.get("marks_rows").asBoolean();
  }

  /** The columns whose values choose the bucket; empty if the table has no fixed buckets. */
  public List<String> bucketKey() {
    List<String> out = new ArrayList<>();
    if (!spec.get("bucket").isNull()) {
      spec.get("bucket").get("columns").forEach(name -> out.add(name.asText()));
    }
    return out;
  }

  /** The number of buckets, or 0 if the table has no fixed buckets. */
  public int bucketCount() {
    return spec.get("bucket").isNull() ? 0 : spec.get("bucket").get("count").asInt();
  }

  /** The bytes at which a writer starts a new file. */
  public long targetFileSize() {
    return spec.get("target_file_size").asLong();
  }

  public StructType structType() {
    return schema;
  }

  /** The snapshot to read: 0 is the state before the first snapshot. */
  public long snapshotId() {
    return spec.get("snapshot_id").asLong();
  }

  /** Tells whether a query asked for this state of the table, instead of getting the newest. */
  public boolean timeTravel() {
    return spec.get("time_travel").asBoolean();
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
    return spec.get("commit_id").textValue();
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
    return spec.get("name").asText();
  }

  // Spark 4.1 and newer compare these two to notice that a table changed under a query.
  public String id() {
    return spec.get("table_id").textValue();
  }

  /** The tables whose rows decide what is written here, if a query reads them. */
  public Set<String> ids() {
    return id() == null ? Set.of() : Set.of(id());
  }

  public String version() {
    return Long.toString(snapshotId());
  }

  public Map<String, String> properties() {
    Map<String, String> out = new HashMap<>();
    spec.get("properties")
        .properties()
        .forEach(entry -> out.put(entry.getKey(), entry.getValue().asText()));
    return out;
  }

  @Override
  public String toString() {
    return name();
  }
}

package io.lockgate.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Handled;
import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.catalog.AppendTable;
import io.lockgate.spark.catalog.LockgateTable;
import io.lockgate.spark.catalog.PrimaryKeyTable;
import io.lockgate.spark.catalog.Procedures;
import io.lockgate.spark.catalog.StagedReplacement;
import io.lockgate.spark.catalog.SystemTable;
import io.lockgate.spark.catalog.TableChanges;
import io.lockgate.spark.catalog.ViewTable;
import io.lockgate.spark.files.BucketFunction;
import io.lockgate.spark.lookup.OfferedLookups;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.spark.SparkConf;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.catalog.TableWritePrivilege;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Tuple2;

/**
 * {@code spark.sql.catalog.NAME=io.lockgate.spark.LockgateCatalog}: Spark's catalog, answered by
 * Python.
 */
public final class LockgateCatalog
    implements StagingTableCatalog, SupportsNamespaces, ProcedureCatalog, FunctionCatalog, Handled {
  private static final Pattern NAMES_DEFAULT_FORMAT =
      Pattern.compile(".*\\.Data(Frame|Stream)Writer");
  private static final Pattern TO_TABLE = Pattern.compile(".*\\.DataStreamWriter");
  private String name;
  private String handle;

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    if (!LockgateExtensions.isIn(SparkSession.active())) {
      throw Bridge.failure(LockgateExtensions.MISSING);
    }
    ObjectNode request = Bridge.object().put("catalog", name);
    request.set("options", Bridge.JSON.valueToTree(options.asCaseSensitiveMap()));
    putStart(request, SparkSession.active().sparkContext().getConf());
    // Two sessions may give one name to two warehouses, so Python tells them apart by a handle.
    this.handle = Bridge.ask("catalog.open", request).get("handle").asText();
  }

  /**
   * The confs that the application started with, which a session cannot change: the confs of this
   * catalog, and whether they are fixed.
   */
  private void putStart(ObjectNode request, SparkConf start) {
    String prefix = "spark.sql.catalog." + name;
    if (start.contains(prefix)) {
      ObjectNode started = request.putObject("started");
      for (Tuple2<String, String> conf : start.getAllWithPrefix(prefix + ".")) {
        started.put(conf._1(), conf._2());
      }
    }
    request.put("fixed", start.getBoolean("spark.lockgate.fixed-catalogs", false));
  }

  @Override
  public String name() {
    return name;
  }

  /** Returns what Python calls this catalog. */
  @Override
  public String handle() {
    return handle;
  }

  private ObjectNode in(String[] namespace) {
    ObjectNode request = Bridge.object().put("catalog", handle).put("catalog_name", name);
    request.set("namespace", Bridge.JSON.valueToTree(namespace));
    return request;
  }

  private ObjectNode at(Identifier identifier) {
    ObjectNode request = in(identifier.namespace()).put("name", identifier.name());
    request.putObject("options");
    return request;
  }

  // --- tables ---

  @Override
  public Set<TableCatalogCapability> capabilities() {
    return Set.of(TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE);
  }

  @Override
  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    requireNamespace(namespace);
    JsonNode names = Bridge.ask("table.list", in(namespace));
    Identifier[] out = new Identifier[names.size()];
    for (int i = 0; i < out.length; i++) {
      out[i] = Identifier.of(namespace, names.get(i).asText());
    }
    return out;
  }

  @Override
  public Table loadTable(Identifier identifier) throws NoSuchTableException {
    return load(identifier, at(identifier));
  }

  @Override
  public Table loadTable(Identifier identifier, String version) throws NoSuchTableException {
    return load(identifier, at(identifier).put("version", version));
  }

  @Override
  public Table loadTable(Identifier identifier, long timestampMicros) throws NoSuchTableException {
    return load(identifier, at(identifier).put("timestamp", timestampMicros));
  }

  @Override
  public Table loadTable(Identifier identifier, Set<TableWritePrivilege> privileges)
      throws NoSuchTableException {
    ObjectNode request = at(identifier);
    ArrayNode names = request.putArray("privileges");
    privileges.stream().map(TableWritePrivilege::name).sorted().forEach(names::add);
    return load(identifier, request);
  }

  private Table load(Identifier identifier, ObjectNode request) throws NoSuchTableException {
    JsonNode reply = Bridge.ask("table.load", request);
    if (reply.has("missing")) {
      if (callerAsksWhetherItExists()) {
        throw new NoSuchTableException(identifier);
      }
      // Spark would replace the message of its own exception; ours offers the nearest names.
      throw Bridge.failure(reply.get("missing").asText());
    }
    return table(identifier, reply, request.get("privileges"));
  }

  /**
   * Tells whether a missing table is no error: Spark's writers and its catalog API load a table to
   * see if it exists.
   */
  private static boolean callerAsksWhetherItExists() {
    return StackWalker.getInstance()
        .walk(
            frames ->
                frames.anyMatch(
                    frame ->
                        frame
                                .getClassName()
                                .startsWith("org.apache.spark.sql.classic.DataFrameWriter")
                            || frame
                                .getClassName()
                                .startsWith("org.apache.spark.sql.classic.Catalog")
                            || frame
                                .getClassName()
                                .startsWith("org.apache.spark.sql.classic.DataStreamWriter")));
  }

  private Table table(Identifier identifier, JsonNode spec) {
    return table(identifier, spec, null);
  }

  /**
   * The table that Python described; every request about it says what the statement may do to it,
   * if Spark said so.
   */
  private Table table(Identifier identifier, JsonNode spec, JsonNode privileges) {
    ObjectNode request = at(identifier);
    spec.path("named").properties().forEach(each -> request.set(each.getKey(), each.getValue()));
    if (privileges != null) {
      request.set("privileges", privileges);
    }
    if (spec.path("system").asBoolean()) {
      return new SystemTable(request, spec);
    }
    if (spec.has("view")) {
      return new ViewTable(request, spec);
    }
    return spec.get("primary_key").isEmpty()
        ? new AppendTable(request, spec)
        : new PrimaryKeyTable(request, spec);
  }

  @Override
  public boolean tableExists(Identifier identifier) {
    return !Bridge.ask("table.load", at(identifier)).has("missing");
  }

  @Override
  public Table createTable(Identifier identifier, TableInfo info) {
    return create(identifier, info.schema(), info.partitions(), info.properties());
  }

  @Override
  @SuppressWarnings("deprecation") // Spark still calls it for some statements
  public Table createTable(
      Identifier identifier,
      StructType schema,
      Transform[] partitioning,
      Map<String, String> properties) {
    return create(identifier, schema, partitioning, properties);
  }

  private Table create(
      Identifier identifier,
      StructType schema,
      Transform[] partitioning,
      Map<String, String> properties) {
    ObjectNode request = definition(identifier, schema, partitioning, properties);
    return table(
        identifier, Bridge.ask("table.create", request.put("for_stream", calledBy(TO_TABLE))));
  }

  private ObjectNode definition(
      Identifier identifier,
      StructType schema,
      Transform[] partitioning,
      Map<String, String> properties) {
    ObjectNode request = at(identifier);
    for (StructField field : schema.fields()) {
      Values.storedTypeToJson(field.name(), field.dataType());
    }
    request.set("schema", Values.typeToJson(schema));
    request.set("properties", Bridge.JSON.valueToTree(new HashMap<>(properties)));
    request.put("default_format", namesDefaultFormat());
    ArrayNode columns = request.putArray("partitioning");
    for (Transform transform : partitioning) {
      columns.add(partitionColumn(transform));
    }
    return request;
  }

  /**
   * Tells whether `saveAsTable` or `toTable` asks, which name the session's default format where
   * the user names none.
   */
  private static boolean namesDefaultFormat() {
    return calledBy(NAMES_DEFAULT_FORMAT);
  }

  private static boolean calledBy(Pattern classes) {
    return StackWalker.getInstance()
        .walk(frames -> frames.anyMatch(frame -> classes.matcher(frame.getClassName()).matches()));
  }

  /** CREATE TABLE ... LIKE, which Spark before 4.3 does not ask of catalogs. */
  public Table createTableLike(Identifier identifier, TableInfo info, Table source) {
    Map<String, String> properties = new HashMap<>(info.properties());
    if (!(source instanceof LockgateTable like)) {
      return create(identifier, info.schema(), info.partitions(), properties);
    }
    ObjectNode request = at(identifier);
    request.set("source", like.request());
    request.set("properties", Bridge.JSON.valueToTree(properties));
    return table(identifier, Bridge.ask("table.create_like", request));
  }

  // --- tables made by a query, and tables that replace others ---

  @Override
  public StagedTable stageCreate(Identifier identifier, TableInfo info) {
    return stage(identifier, info, true, false);
  }

  @Override
  public StagedTable stageReplace(Identifier identifier, TableInfo info) {
    return stage(identifier, info, false, true);
  }

  @Override
  public StagedTable stageCreateOrReplace(Identifier identifier, TableInfo info) {
    return stage(identifier, info, true, true);
  }

  private StagedTable stage(
      Identifier identifier, TableInfo info, boolean mayCreate, boolean mayReplace) {
    ObjectNode request =
        definition(identifier, info.schema(), info.partitions(), info.properties());
    JsonNode spec =
        Bridge.ask(
            "table.stage", request.put("may_create", mayCreate).put("may_replace", mayReplace));
    return new StagedReplacement(at(identifier), spec);
  }

  private static String partitionColumn(Transform transform) {
    NamedReference[] references = transform.references();
    if (!transform.name().equals("identity")
        || references.length != 1
        || references[0].fieldNames().length != 1) {
      throw Bridge.failure(
          "Partitioning by "
              + transform.describe()
              + " is not supported: partition by top-level columns, and set "
              + "TBLPROPERTIES('bucket'='<count>', 'bucket-key'='<columns>') for buckets");
    }
    return references[0].fieldNames()[0];
  }

  @Override
  public Table alterTable(Identifier identifier, TableChange... changes) {
    ObjectNode request = at(identifier);
    TableChanges.write(changes, request.putArray("changes"));
    return table(identifier, Bridge.ask("table.alter", request));
  }

  @Override
  public boolean dropTable(Identifier identifier) {
    return Bridge.ask("table.drop", at(identifier)).asBoolean();
  }

  @Override
  public void renameTable(Identifier from, Identifier to) {
    ObjectNode request = at(from);
    ObjectNode target = request.putObject("to").put("name", to.name());
    target.set("namespace", Bridge.JSON.valueToTree(to.namespace()));
    Bridge.ask("table.rename", request);
  }

  // --- namespaces ---

  @Override
  public String[][] listNamespaces() {
    return namespaces(new String[0]);
  }

  @Override
  public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
    if (namespace.length > 0) {
      requireNamespace(namespace);
    }
    return namespaces(namespace);
  }

  private String[][] namespaces(String[] namespace) {
    return Bridge.JSON.convertValue(Bridge.ask("namespace.list", in(namespace)), String[][].class);
  }

  private void requireNamespace(String[] namespace) throws NoSuchNamespaceException {
    loadNamespaceMetadata(namespace);
  }

  @Override
  public Map<String, String> loadNamespaceMetadata(String[] namespace)
      throws NoSuchNamespaceException {
    JsonNode metadata = Bridge.ask("namespace.load", in(namespace));
    if (metadata.isNull() || metadata.isMissingNode()) {
      throw new NoSuchNamespaceException(namespace);
    }
    Map<String, String> out = new HashMap<>();
    metadata.properties().forEach(entry -> out.put(entry.getKey(), entry.getValue().asText()));
    return out;
  }

  @Override
  public void createNamespace(String[] namespace, Map<String, String> metadata) {
    ObjectNode request = in(namespace);
    request.set("properties", Bridge.JSON.valueToTree(metadata));
    Bridge.ask("namespace.create", request);
  }

  @Override
  public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    ObjectNode request = in(namespace);
    ObjectNode all = request.putObject("changes");
    for (NamespaceChange change : changes) {
      if (change instanceof NamespaceChange.SetProperty set) {
        all.put(set.property(), set.value());
      } else if (change instanceof NamespaceChange.RemoveProperty remove) {
        all.putNull(remove.property());
      }
    }
    Bridge.ask("namespace.alter", request);
  }

  @Override
  public boolean dropNamespace(String[] namespace, boolean cascade) {
    return Bridge.ask("namespace.drop", in(namespace).put("cascade", cascade)).asBoolean();
  }

  // --- procedures ---

  @Override
  public UnboundProcedure loadProcedure(Identifier identifier) {
    return new Procedures.Unbound(at(identifier), Bridge.ask("procedure.load", at(identifier)));
  }

  @Override
  public Identifier[] listProcedures(String[] namespace) {
    JsonNode procedures = Bridge.ask("procedure.list", in(namespace)).get("procedures");
    Identifier[] out = new Identifier[procedures.size()];
    for (int i = 0; i < out.length; i++) {
      JsonNode procedure = procedures.get(i);
      String[] home = Bridge.JSON.convertValue(procedure.get("namespace"), String[].class);
      out[i] = Identifier.of(home, procedure.get("name").asText());
    }
    return out;
  }

  // --- functions: those that Lockgate's own plans use ---

  @Override
  public Identifier[] listFunctions(String[] namespace) {
    return new Identifier[0];
  }

  @Override
  public UnboundFunction loadFunction(Identifier identifier) throws NoSuchFunctionException {
    if (identifier.name().equals(BucketFunction.NAME)) {
      return new BucketFunction();
    }
    UnboundFunction lookup = OfferedLookups.find(SparkSession.active(), identifier.name());
    if (lookup != null) {
      return lookup;
    }
    throw new NoSuchFunctionException(identifier);
  }

  @Override
  public String toString() {
    return "LockgateCatalog(" + name + ")";
  }
}

package io.lockgate.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.ConnectorVersion;
import io.lockgate.spark.bridge.PythonHandle;
import io.lockgate.spark.catalog.AppendTable;
import io.lockgate.spark.catalog.Callers;
import io.lockgate.spark.catalog.CatalogRequests;
import io.lockgate.spark.catalog.DefinedTables;
import io.lockgate.spark.catalog.LockgateTable;
import io.lockgate.spark.catalog.PrimaryKeyTable;
import io.lockgate.spark.catalog.Procedures;
import io.lockgate.spark.catalog.StagedReplacement;
import io.lockgate.spark.catalog.SystemTable;
import io.lockgate.spark.catalog.TableChanges;
import io.lockgate.spark.catalog.ViewTable;
import io.lockgate.spark.enforcement.parts.PartRegistry;
import io.lockgate.spark.files.BucketFunction;
import io.lockgate.spark.files.WordMatch;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableWritePrivilege;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * {@code spark.sql.catalog.NAME=io.lockgate.spark.LockgateCatalog}: Spark's catalog, answered by
 * Python.
 */
public final class LockgateCatalog extends DefinedTables
    implements SupportsNamespaces, ProcedureCatalog, FunctionCatalog, PythonHandle {
  private String name;
  private CatalogRequests requests;

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    if (ConnectorVersion.fault() != null) {
      throw Bridge.failure(ConnectorVersion.fault());
    }
    if (!LockgateExtensions.isIn(SparkSession.active())) {
      throw Bridge.failure(LockgateExtensions.MISSING);
    }
    this.requests =
        new CatalogRequests(name, options, SparkSession.active().sparkContext().getConf());
  }

  @Override
  public String name() {
    return name;
  }

  /** The name by which Python finds this catalog. */
  @Override
  public String handle() {
    return requests.handle();
  }

  // --- tables ---

  @Override
  public Set<TableCatalogCapability> capabilities() {
    return Set.of(TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE);
  }

  @Override
  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    requireNamespace(namespace);
    JsonNode names = Bridge.ask("table.list", requests.in(namespace));
    Identifier[] out = new Identifier[names.size()];
    for (int i = 0; i < out.length; i++) {
      out[i] = Identifier.of(namespace, names.get(i).asText());
    }
    return out;
  }

  @Override
  public Table loadTable(Identifier identifier) throws NoSuchTableException {
    return load(identifier, loading(identifier));
  }

  @Override
  public Table loadTable(Identifier identifier, String version) throws NoSuchTableException {
    return load(identifier, loading(identifier).put("version", version));
  }

  @Override
  public Table loadTable(Identifier identifier, long timestampMicros) throws NoSuchTableException {
    return load(identifier, loading(identifier).put("timestamp", timestampMicros));
  }

  @Override
  public Table loadTable(Identifier identifier, Set<TableWritePrivilege> privileges)
      throws NoSuchTableException {
    ObjectNode request = loading(identifier);
    ArrayNode names = request.putArray("privileges");
    privileges.stream().map(TableWritePrivilege::name).sorted().forEach(names::add);
    return load(identifier, request);
  }

  private ObjectNode loading(Identifier identifier) {
    return requests.at(identifier).putNull("version").putNull("timestamp");
  }

  private Table load(Identifier identifier, ObjectNode request) throws NoSuchTableException {
    JsonNode reply = Bridge.ask("table.load", request);
    if (!reply.get("missing").isNull()) {
      if (Callers.askWhetherItExists()) {
        throw new NoSuchTableException(identifier);
      }
      // Spark would replace the message of its own exception; ours offers the nearest names.
      throw Bridge.failure(reply.get("missing").asText());
    }
    return loaded(identifier, reply, request.get("privileges"));
  }

  /**
   * The table that Python described; each request about it names the statement's privileges, if
   * Spark names them.
   */
  private Table loaded(Identifier identifier, JsonNode reply, JsonNode privileges) {
    ObjectNode request = requests.at(identifier);
    request.set("privileges", privileges);
    reply.get("named").properties().forEach(each -> request.set(each.getKey(), each.getValue()));
    if (!reply.get("system").isNull()) {
      return new SystemTable(request, reply.get("system"));
    }
    return reply.get("view").isNull()
        ? table(request, reply.get("table"))
        : new ViewTable(request, reply.get("table"), reply.get("view"));
  }

  private Table table(Identifier identifier, JsonNode spec) {
    return table(requests.at(identifier), spec);
  }

  private static Table table(ObjectNode request, JsonNode spec) {
    return spec.get("primary_key").isEmpty()
        ? new AppendTable(request, spec)
        : new PrimaryKeyTable(request, spec);
  }

  @Override
  public boolean tableExists(Identifier identifier) {
    return Bridge.ask("table.load", loading(identifier)).get("missing").isNull();
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

  @Override
  protected Table create(
      Identifier identifier,
      StructType schema,
      Transform[] partitioning,
      Map<String, String> properties) {
    ObjectNode request = requests.definition(identifier, schema, partitioning, properties);
    return table(
        identifier, Bridge.ask("table.create", request.put("for_stream", Callers.areToTable())));
  }

  @Override
  protected Table createLike(
      Identifier identifier,
      StructType schema,
      Transform[] partitioning,
      Map<String, String> described,
      Table source) {
    Map<String, String> properties = new HashMap<>(described);
    if (!(source instanceof LockgateTable like)) {
      return create(identifier, schema, partitioning, properties);
    }
    ObjectNode request = requests.at(identifier);
    request.set("source", like.request());
    request.set("properties", Bridge.JSON.valueToTree(properties));
    return table(identifier, Bridge.ask("table.create_like", request));
  }

  // --- tables made by a query, and tables that replace others ---

  @Override
  protected StagedTable stage(
      Identifier identifier,
      StructType schema,
      Transform[] partitioning,
      Map<String, String> properties,
      boolean mayCreate,
      boolean mayReplace) {
    ObjectNode request = requests.definition(identifier, schema, partitioning, properties);
    JsonNode spec =
        Bridge.ask(
            "table.stage", request.put("may_create", mayCreate).put("may_replace", mayReplace));
    return new StagedReplacement(requests.at(identifier), spec);
  }

  @Override
  public Table alterTable(Identifier identifier, TableChange... changes) {
    ObjectNode request = requests.at(identifier);
    TableChanges.write(changes, request.putArray("changes"));
    return table(identifier, Bridge.ask("table.alter", request));
  }

  @Override
  public boolean dropTable(Identifier identifier) {
    return Bridge.ask("table.drop", requests.at(identifier)).asBoolean();
  }

  @Override
  public void renameTable(Identifier from, Identifier to) {
    ObjectNode request = requests.at(from);
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
    return Bridge.JSON.convertValue(
        Bridge.ask("namespace.list", requests.in(namespace)), String[][].class);
  }

  private void requireNamespace(String[] namespace) throws NoSuchNamespaceException {
    loadNamespaceMetadata(namespace);
  }

  @Override
  public Map<String, String> loadNamespaceMetadata(String[] namespace)
      throws NoSuchNamespaceException {
    JsonNode metadata = Bridge.ask("namespace.load", requests.in(namespace));
    if (metadata.isNull()) {
      throw new NoSuchNamespaceException(namespace);
    }
    Map<String, String> out = new HashMap<>();
    metadata.properties().forEach(entry -> out.put(entry.getKey(), entry.getValue().asText()));
    return out;
  }

  @Override
  public void createNamespace(String[] namespace, Map<String, String> metadata) {
    ObjectNode request = requests.in(namespace);
    request.set("properties", Bridge.JSON.valueToTree(metadata));
    Bridge.ask("namespace.create", request);
  }

  @Override
  public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    ObjectNode request = requests.in(namespace);
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
    return Bridge.ask("namespace.drop", requests.in(namespace).put("cascade", cascade)).asBoolean();
  }

  // --- procedures ---

  @Override
  public UnboundProcedure loadProcedure(Identifier identifier) {
    return new Procedures.Unbound(
        requests.at(identifier), Bridge.ask("procedure.load", requests.at(identifier)));
  }

  /** SHOW PROCEDURES, which Spark has since 4.1. */
  public Identifier[] listProcedures(String[] namespace) {
    JsonNode procedures = Bridge.ask("procedure.list", requests.in(namespace)).get("procedures");
    Identifier[] out = new Identifier[procedures.size()];
    for (int i = 0; i < out.length; i++) {
      JsonNode procedure = procedures.get(i);
      String[] home = Bridge.JSON.convertValue(procedure.get("namespace"), String[].class);
      out[i] = Identifier.of(home, procedure.get("name").asText());
    }
    return out;
  }

  // --- functions: match, and those that Lockgate's own plans use ---

  @Override
  public Identifier[] listFunctions(String[] namespace) {
    return new Identifier[0];
  }

  @Override
  public UnboundFunction loadFunction(Identifier identifier) throws NoSuchFunctionException {
    if (identifier.name().equals(BucketFunction.NAME)) {
      return new BucketFunction();
    }
    if (identifier.name().equals(WordMatch.NAME)) {
      return new WordMatch();
    }
    UnboundFunction offered = PartRegistry.function(SparkSession.active(), identifier.name());
    if (offered != null) {
      return offered;
    }
    throw new NoSuchFunctionException(identifier);
  }

  @Override
  public String toString() {
    return "LockgateCatalog(" + name + ")";
  }
}

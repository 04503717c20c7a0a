package io.lockgate.spark;

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
import io.lockgate.spark.messages.AlterNamespaceRequest;
import io.lockgate.spark.messages.AlterRequest;
import io.lockgate.spark.messages.CreateLikeRequest;
import io.lockgate.spark.messages.CreateNamespaceRequest;
import io.lockgate.spark.messages.CreateRequest;
import io.lockgate.spark.messages.Definition;
import io.lockgate.spark.messages.DropNamespaceRequest;
import io.lockgate.spark.messages.LoadAnswer;
import io.lockgate.spark.messages.LoadRequest;
import io.lockgate.spark.messages.Operations;
import io.lockgate.spark.messages.QualifiedName;
import io.lockgate.spark.messages.RenameRequest;
import io.lockgate.spark.messages.StageRequest;
import io.lockgate.spark.messages.StagedSpec;
import io.lockgate.spark.messages.TableRequest;
import io.lockgate.spark.messages.TableSpec;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
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
    return Bridge.ask(Operations.TABLE_LIST, requests.in(namespace)).stream()
        .map(table -> Identifier.of(namespace, table))
        .toArray(Identifier[]::new);
  }

  @Override
  public Table loadTable(Identifier identifier) throws NoSuchTableException {
    return load(identifier, loading(identifier));
  }

  @Override
  public Table loadTable(Identifier identifier, String version) throws NoSuchTableException {
    return load(identifier, loading(identifier).withVersion(version));
  }

  @Override
  public Table loadTable(Identifier identifier, long timestampMicros) throws NoSuchTableException {
    return load(identifier, loading(identifier).withTimestamp(timestampMicros));
  }

  @Override
  public Table loadTable(Identifier identifier, Set<TableWritePrivilege> privileges)
      throws NoSuchTableException {
    List<String> names = privileges.stream().map(TableWritePrivilege::name).sorted().toList();
    TableRequest request = requests.at(identifier).withPrivileges(names);
    return load(identifier, new LoadRequest(request, null, null));
  }

  private LoadRequest loading(Identifier identifier) {
    return new LoadRequest(requests.at(identifier), null, null);
  }

  private static Table load(Identifier identifier, LoadRequest request)
      throws NoSuchTableException {
    LoadAnswer reply = Bridge.ask(Operations.TABLE_LOAD, request);
    if (reply.missing() != null) {
      if (Callers.askWhetherItExists()) {
        throw new NoSuchTableException(identifier);
      }
      // Spark would replace the message of its own exception; ours offers the nearest names.
      throw Bridge.failure(reply.missing());
    }
    return loaded(request.tableRequest(), reply);
  }

  /**
   * The table that Python described; each request about it names the statement's privileges, if
   * Spark names them.
   */
  private static Table loaded(TableRequest asked, LoadAnswer reply) {
    QualifiedName named = reply.named();
    TableRequest request =
        named == null
            ? asked
            : asked
                .withNamespaceRequest(asked.namespaceRequest().withNamespace(named.namespace()))
                .withName(named.name());
    if (reply.system() != null) {
      return new SystemTable(request, reply.system());
    }
    return reply.view() == null
        ? table(request, reply.table())
        : new ViewTable(request, reply.table(), reply.view());
  }

  private Table table(Identifier identifier, TableSpec spec) {
    return table(requests.at(identifier), spec);
  }

  private static Table table(TableRequest request, TableSpec spec) {
    return spec.primaryKey().isEmpty()
        ? new AppendTable(request, spec)
        : new PrimaryKeyTable(request, spec);
  }

  @Override
  public boolean tableExists(Identifier identifier) {
    return Bridge.ask(Operations.TABLE_LOAD, loading(identifier)).missing() == null;
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
    Definition definition = requests.definition(identifier, schema, partitioning, properties);
    CreateRequest request = new CreateRequest(definition, Callers.areToTable());
    return table(identifier, Bridge.ask(Operations.TABLE_CREATE, request));
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
    CreateLikeRequest request =
        new CreateLikeRequest(requests.at(identifier), like.request(), properties);
    return table(identifier, Bridge.ask(Operations.TABLE_CREATE_LIKE, request));
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
    Definition definition = requests.definition(identifier, schema, partitioning, properties);
    StagedSpec spec =
        Bridge.ask(Operations.TABLE_STAGE, new StageRequest(definition, mayCreate, mayReplace));
    return new StagedReplacement(requests.at(identifier), spec);
  }

  @Override
  public Table alterTable(Identifier identifier, TableChange... changes) {
    AlterRequest request =
        new AlterRequest(requests.at(identifier), TableChanges.messages(changes));
    return table(identifier, Bridge.ask(Operations.TABLE_ALTER, request));
  }

  @Override
  public boolean dropTable(Identifier identifier) {
    return Bridge.ask(Operations.TABLE_DROP, requests.at(identifier));
  }

  @Override
  public void renameTable(Identifier from, Identifier to) {
    QualifiedName target = new QualifiedName(List.of(to.namespace()), to.name());
    Bridge.ask(Operations.TABLE_RENAME, new RenameRequest(requests.at(from), target));
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
    return Bridge.ask(Operations.NAMESPACE_LIST, requests.in(namespace)).stream()
        .map(parts -> parts.toArray(String[]::new))
        .toArray(String[][]::new);
  }

  private void requireNamespace(String[] namespace) throws NoSuchNamespaceException {
    loadNamespaceMetadata(namespace);
  }

  @Override
  public Map<String, String> loadNamespaceMetadata(String[] namespace)
      throws NoSuchNamespaceException {
    Map<String, String> metadata = Bridge.ask(Operations.NAMESPACE_LOAD, requests.in(namespace));
    if (metadata == null) {
      throw new NoSuchNamespaceException(namespace);
    }
    return new HashMap<>(metadata);
  }

  @Override
  public void createNamespace(String[] namespace, Map<String, String> metadata) {
    Bridge.ask(
        Operations.NAMESPACE_CREATE, new CreateNamespaceRequest(requests.in(namespace), metadata));
  }

  @Override
  public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    Map<String, String> all = new LinkedHashMap<>();
    for (NamespaceChange change : changes) {
      if (change instanceof NamespaceChange.SetProperty set) {
        all.put(set.property(), set.value());
      } else if (change instanceof NamespaceChange.RemoveProperty remove) {
        all.put(remove.property(), null);
      }
    }
    Bridge.ask(Operations.NAMESPACE_ALTER, new AlterNamespaceRequest(requests.in(namespace), all));
  }

  @Override
  public boolean dropNamespace(String[] namespace, boolean cascade) {
    return Bridge.ask(
        Operations.NAMESPACE_DROP, new DropNamespaceRequest(requests.in(namespace), cascade));
  }

  // --- procedures ---

  @Override
  public UnboundProcedure loadProcedure(Identifier identifier) {
    TableRequest request = requests.at(identifier);
    return new Procedures.Unbound(request, Bridge.ask(Operations.PROCEDURE_LOAD, request));
  }

  /** SHOW PROCEDURES, which Spark has since 4.1. */
  public Identifier[] listProcedures(String[] namespace) {
    return Bridge.ask(Operations.PROCEDURE_LIST, requests.in(namespace)).procedures().stream()
        .map(each -> Identifier.of(each.namespace().toArray(String[]::new), each.name()))
        .toArray(Identifier[]::new);
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

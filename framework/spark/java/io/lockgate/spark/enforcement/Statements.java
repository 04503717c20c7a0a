package io.lockgate.spark.enforcement;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Failure;
import io.lockgate.spark.catalog.LockgateTable;
import io.lockgate.spark.enforcement.parts.PlanWalk;
import io.lockgate.spark.enforcement.parts.SinkLog;
import io.lockgate.spark.messages.Messages;
import java.net.URI;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.PersistedView$;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.ResolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.ResolvedPartitionSpec;
import org.apache.spark.sql.catalyst.analysis.ResolvedPersistentView;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.analysis.ResolvedTempView;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.CallMethodViaReflection;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.TableSpec;
import org.apache.spark.sql.catalyst.streaming.WriteToStream;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.command.AlterTableRenameCommand;
import org.apache.spark.sql.execution.command.CreateViewCommand;
import org.apache.spark.sql.execution.command.LoadDataCommand;
import org.apache.spark.sql.execution.command.ResetCommand;
import org.apache.spark.sql.execution.command.SetCommand;
import org.apache.spark.sql.execution.command.ShowTablesCommand;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.execution.datasources.InsertIntoDataSourceCommand;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.Product;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/** The nodes of a plan, as Python knows them: their classes, and the names that they are about. */
final class Statements {
  private static final String SPARK = "org.apache.spark.sql.";
  private static final String OURS = "io.lockgate.spark";

  /** The parts of statements that hold a location of files. */
  private static final Set<String> LOCATIONS = Set.of("location", "path", "locationUri");

  /** Properties that name a further file, which readers of a table open. */
  private static final Set<String> OPENED =
      Set.of("avroschemaurl", "avro.schema.url", "rowvalidationxsdpath");

  private static final String CLEANING = "cleanSource";
  private static final String ARCHIVE = "sourceArchiveDir";

  private final SparkSession session;

  Statements(SparkSession session) {
    this.session = session;
  }

  /**
   * The name that Python knows the class of a node by; those of others than Spark are whole. A
   * class of several statements has several.
   */
  static String name(LogicalPlan plan) {
    if (plan instanceof CreateViewCommand view && view.viewType() != PersistedView$.MODULE$) {
      return "CreateTemporaryView";
    } else if (!(plan instanceof Command)) {
      return simpleName(plan);
    } else if (plan instanceof ShowTablesCommand tables && tables.partitionSpec().isDefined()) {
      return "ShowTablePartition";
    } else if (simpleName(plan).startsWith("Describe") && isSaid(plan, "isExtended", true)) {
      return "DescribeExtended";
    } else if (overwrites(plan)) {
      return "InsertOverwrite";
    } else if (plan instanceof AppendData append && merges(append)) {
      return "InsertOnlyMerge";
    }
    return simpleName(plan);
  }

  /**
   * Tells whether an append is what Spark before 4.2 makes of a MERGE that only inserts: it looks
   * for equal rows in the relation that it writes. What a user reads is another one of the table.
   */
  private static boolean merges(AppendData append) {
    return append.table() instanceof DataSourceV2Relation written
        && append
            .query()
            .exists(
                each ->
                    each instanceof DataSourceV2Relation read
                        && read.outputSet().equals(written.outputSet()));
  }

  /** Tells whether a statement replaces rows of a table of the session's catalog. */
  private static boolean overwrites(LogicalPlan plan) {
    if (plan instanceof InsertIntoHadoopFsRelationCommand files) {
      return files.catalogTable().isDefined() && files.mode() == SaveMode.Overwrite;
    }
    return simpleName(plan).equals("InsertIntoHiveTable") && isSaid(plan, "overwrite", true)
        || plan instanceof InsertIntoDataSourceCommand insert && insert.overwrite()
        || plan instanceof LoadDataCommand load && load.isOverwrite();
  }

  private static boolean isSaid(LogicalPlan plan, String part, Object value) {
    for (int i = 0; i < plan.productArity(); i++) {
      if (plan.productElementName(i).equals(part) && value.equals(plan.productElement(i))) {
        return true;
      }
    }
    return false;
  }

  private static String simpleName(LogicalPlan plan) {
    String name = plan.getClass().getName();
    return name.startsWith(SPARK)
        ? name.substring(name.lastIndexOf('.') + 1).replace("$", "")
        : name;
  }

  /** Describes a node. */
  ObjectNode describe(LogicalPlan plan) {
    ObjectNode found = Bridge.object().put("node", name(plan)).put("setting", setting(plan));
    ArrayNode targets = found.putArray("targets");
    found.putNull("source");
    ArrayNode locations = found.putArray("locations");
    if (renamesTemporary(plan)) {
      add(targets, ((AlterTableRenameCommand) plan).oldName());
    } else if (plan instanceof Command) {
      CollectionConverters.asJava(plan.productIterator().toSeq())
          .forEach(part -> add(targets, part));
      if (plan instanceof ShowTablesCommand tables && tables.partitionSpec().isDefined()) {
        add(
            targets,
            new TableIdentifier(tables.tableIdentifierPattern().get(), tables.databaseName()));
      }
      written(targets, plan);
      // Of what is there already, a write has the location among its options.
      if (PlanWalk.written(plan) == null && !simpleName(plan).startsWith("Insert")) {
        locationsOf(found, locations, plan, simpleName(plan).startsWith("Create"));
      }
    }
    if (plan instanceof WriteToStream stream) {
      sink(targets, stream);
      if (!stream.deleteCheckpointOnStop()) { // others are new and temporary
        locations.add(stream.resolvedCheckpointLocation());
      }
    }
    return found;
  }

  /** Tells whether a view of the session gets another name, which is one of the session too. */
  private boolean renamesTemporary(LogicalPlan plan) {
    return plan instanceof AlterTableRenameCommand rename
        && session.sessionState().catalog().isTempView(rename.oldName());
  }

  /** Describes a name of a table or view that no statement is about. */
  ObjectNode describeNamed(LogicalPlan plan) {
    ObjectNode found = Bridge.object().put("node", "NameAlone").putNull("setting");
    add(found.putArray("targets"), plan);
    found.putNull("source").putArray("locations");
    return found;
  }

  /**
   * Describes the table that a statement names or writes, before Spark matches columns with it;
   * null for what has no name in a catalog, and for views of a session.
   */
  ObjectNode describeTarget(LogicalPlan statement, LogicalPlan table) {
    String does = name(statement);
    if (statement instanceof InsertIntoStatement insert) {
      does = insert.overwrite() ? "InsertOverwrite" : "AppendData";
    }
    ObjectNode found = Bridge.object().put("node", "TargetOf " + does).putNull("setting");
    ArrayNode targets = found.putArray("targets");
    found.putNull("source").putArray("locations");
    if (!(table instanceof ResolvedTempView)) {
      add(targets, table);
    }
    stored(targets, table);
    return targets.isEmpty() ? null : found;
  }

  /** Adds the table, the files, or the kind of sink that a stream writes to. */
  private void sink(ArrayNode targets, WriteToStream stream) {
    if (stream.catalogTable().isDefined()) {
      add(targets, stream.catalogTable().get());
    } else if (stream.catalogAndIdent().isDefined()) {
      named(targets, stream.catalogAndIdent().get()._1(), stream.catalogAndIdent().get()._2());
    } else {
      String folder = SinkLog.folder(stream);
      String kind = stream.sink().getClass().getSimpleName().replace("$", "");
      add(targets, "path", null, folder == null ? kind : folder, false);
    }
  }

  /** Describes a function that calls any method of Java; null for a node without one. */
  static ObjectNode describeCall(LogicalPlan plan) {
    boolean calls =
        CollectionConverters.asJava(plan.expressions()).stream()
            .anyMatch(each -> each.exists(CallMethodViaReflection.class::isInstance));
    if (!calls) {
      return null;
    }
    ObjectNode found = Bridge.object().put("node", "CallMethodViaReflection").putNull("setting");
    found.putNull("source").putArray("targets");
    found.putArray("locations");
    return found;
  }

  /**
   * Describes the files that a stream deletes, or moves to another folder, once it has read them;
   * null for a node of none.
   */
  static ObjectNode describeCleaning(LogicalPlan plan) {
    boolean isOfSource =
        Relations.isOfStream(plan)
            && plan.productArity() > 0
            && plan.productElement(0) instanceof DataSource;
    if (!isOfSource) {
      return null;
    }
    DataSource source = (DataSource) plan.productElement(0);
    CaseInsensitiveStringMap options = options(source);
    if (options.getOrDefault(CLEANING, "off").equalsIgnoreCase("off")) {
      return null;
    }
    ObjectNode found = Bridge.object().put("node", "CleanedSource").putNull("setting");
    ArrayNode targets = found.putArray("targets");
    Set<String> paths = new LinkedHashSet<>(CollectionConverters.asJava(source.paths()));
    Stream.of(options.get("path")).filter(Objects::nonNull).forEach(paths::add);
    paths.forEach(each -> add(targets, "path", null, each, false));
    found.putNull("source");
    ArrayNode locations = found.putArray("locations");
    Stream.of(options.get(ARCHIVE)).filter(Objects::nonNull).forEach(locations::add);
    return found;
  }

  /** Tells whether a stream moves files to another folder, once it has read them. */
  static boolean archives(DataSource source) {
    return options(source).getOrDefault(CLEANING, "off").equalsIgnoreCase("archive");
  }

  private static CaseInsensitiveStringMap options(DataSource source) {
    return new CaseInsensitiveStringMap(CollectionConverters.asJava(source.options()));
  }

  /**
   * Adds the files, and the kind of source, to which a statement binds the name of a table, a
   * partition or a database. Only of what it {@code creates} does it say them by a table's
   * description: others describe tables that are there.
   */
  private static void locationsOf(
      ObjectNode found, ArrayNode locations, Product part, boolean creates) {
    for (int i = 0; i < part.productArity(); i++) {
      boolean isLocation = LOCATIONS.contains(part.productElementName(i));
      location(found, locations, part.productElement(i), creates, isLocation);
    }
  }

  private static void location(
      ObjectNode found, ArrayNode locations, Object part, boolean creates, boolean isLocation) {
    if (part instanceof Option<?> option) {
      if (option.isDefined()) {
        location(found, locations, option.get(), creates, isLocation);
      }
    } else if (part instanceof String || part instanceof URI) {
      if (isLocation) {
        locations.add(part.toString());
      }
    } else if (part instanceof Tuple2<?, ?> pair) { // a partition, and perhaps its location
      location(found, locations, pair._2(), creates, true);
    } else if (part instanceof scala.collection.Map<?, ?> map) {
      for (Map.Entry<?, ?> each : CollectionConverters.asJava(map).entrySet()) {
        String key =
            each.getKey().toString().toLowerCase(Locale.ROOT).replaceFirst("^option\\.", "");
        boolean isNamed = LOCATIONS.contains(key) || OPENED.contains(key);
        location(found, locations, each.getValue(), creates, isNamed);
      }
    } else if (part instanceof scala.collection.Iterable<?> several) {
      CollectionConverters.asJava(several)
          .forEach(each -> location(found, locations, each, creates, false));
    } else if (part instanceof ResolvedPartitionSpec || part instanceof CatalogStorageFormat) {
      locationsOf(found, locations, (Product) part, creates);
    } else if (part instanceof TableSpec spec) {
      source(found, spec.provider());
      locationsOf(found, locations, spec, creates);
    } else if (part instanceof CatalogTable table && creates) {
      source(found, table.provider());
      location(found, locations, table.storage(), true, false);
    }
  }

  private static void source(ObjectNode found, Option<String> provider) {
    if (provider.isDefined()) {
      found.put("source", provider.get());
    }
  }

  /** The conf that a statement changes; null for any other, for one that only looks, or for all. */
  private static String setting(LogicalPlan plan) {
    if (plan instanceof SetCommand set && set.kv().isDefined()) {
      Tuple2<String, Option<String>> pair = set.kv().get();
      return pair._2().isDefined() ? pair._1() : null;
    }
    return plan instanceof ResetCommand reset ? reset.config().getOrElse(() -> null) : null;
  }

  private void add(ArrayNode targets, Object part) {
    if (part instanceof Option<?> option) {
      option.foreach(
          each -> {
            add(targets, each);
            return null;
          });
    } else if (part instanceof ResolvedTable found) {
      ObjectNode target = named(targets, found.catalog(), found.identifier());
      if (found.table() instanceof LockgateTable ours) {
        target.set("table", Messages.tree(ours.request()));
      } else {
        columns(target, found.output());
      }
    } else if (part instanceof ResolvedIdentifier found) {
      named(targets, found.catalog(), found.identifier());
    } else if (part instanceof ResolvedPersistentView found) {
      named(targets, found.catalog(), found.identifier());
    } else if (part instanceof ResolvedNamespace found) {
      String[] space = CollectionConverters.asJava(found.namespace()).toArray(String[]::new);
      add(
          targets,
          "database",
          found.catalog().name(),
          String.join(".", space),
          isOurs(found.catalog()));
    } else if (part instanceof CatalogTable found) {
      add(targets, found.identifier());
    } else if (part instanceof ResolvedTempView found
        && found.identifier().namespace().length == 0) {
      add(targets, "temporary", null, found.identifier().name(), false);
    } else if (part instanceof TableIdentifier found
        && session.sessionState().catalog().isTempView(found)) {
      add(targets, "temporary", null, found.table(), false);
    } else if (part instanceof TableIdentifier found) {
      ObjectNode name = Relations.ofV1(found);
      ObjectNode target =
          add(targets, "table", name.get("catalog").asText(), name.get("name").asText(), false);
      ofCatalog(target, found);
    }
  }

  /** Adds the columns of a table of the session's catalog, if it is there and has rows. */
  private void ofCatalog(ObjectNode target, TableIdentifier name) {
    SessionCatalog catalog = session.sessionState().catalog();
    if (catalog.isTempView(name) || !catalog.tableExists(name)) {
      return;
    }
    try {
      CatalogTable table = catalog.getTableMetadata(name);
      if (!table.tableType().equals(CatalogTableType.VIEW())) {
        columns(target, DataTypeUtils.toAttributes(table.schema()));
      }
    } catch (AnalysisException e) {
      throw Failure.within(e);
    }
  }

  private static void columns(ObjectNode target, scala.collection.Seq<? extends Attribute> of) {
    ArrayNode columns = target.putArray("columns");
    for (Attribute each : CollectionConverters.asJava(of)) {
      columns.addObject().put("name", each.name()).put("type", each.dataType().sql());
    }
  }

  /** Adds the table or the files that a statement writes to. */
  private void written(ArrayNode targets, LogicalPlan plan) {
    if (plan instanceof InsertIntoHadoopFsRelationCommand files && files.catalogTable().isEmpty()) {
      add(targets, "path", null, files.outputPath().toString(), false);
    }
    LogicalPlan found =
        plan instanceof InsertIntoDataSourceCommand insert
            ? insert.logicalRelation()
            : PlanWalk.written(plan);
    while (found != null && found.children().size() == 1) {
      found = found.children().apply(0);
    }
    stored(targets, found);
  }

  private void stored(ArrayNode targets, LogicalPlan found) {
    if (found instanceof DataSourceV2Relation relation
        && relation.table() instanceof LockgateTable ours) {
      add(targets, "table", null, ours.name(), true).set("table", Messages.tree(ours.request()));
    } else if (found instanceof DataSourceV2Relation relation
        && relation.catalog().isDefined()
        && relation.identifier().isDefined()) {
      columns(
          named(targets, relation.catalog().get(), relation.identifier().get()), relation.output());
    } else if (found instanceof LogicalRelation relation && relation.catalogTable().isDefined()) {
      add(targets, relation.catalogTable().get());
    } else if (found instanceof HiveTableRelation relation) {
      add(targets, relation.tableMeta());
    }
  }

  private static ObjectNode named(ArrayNode targets, CatalogPlugin catalog, Identifier name) {
    String[] space = name.namespace();
    String[] parts = Arrays.copyOf(space, space.length + 1);
    parts[space.length] = name.name();
    return add(targets, "table", catalog.name(), String.join(".", parts), isOurs(catalog));
  }

  private static boolean isOurs(CatalogPlugin catalog) {
    return catalog.getClass().getPackageName().equals(OURS);
  }

  private static ObjectNode add(
      ArrayNode targets, String kind, String catalog, String name, boolean isOurs) {
    ObjectNode target = targets.addObject().put("kind", kind).put("catalog", catalog);
    return target.put("name", name).put("ours", isOurs).putNull("table").putNull("columns");
  }
}

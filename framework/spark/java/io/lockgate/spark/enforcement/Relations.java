package io.lockgate.spark.enforcement;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.catalog.LockgateTable;
import io.lockgate.spark.catalog.SystemTable;
import io.lockgate.spark.enforcement.parts.PlanWalk;
import io.lockgate.spark.enforcement.parts.StatementText;
import io.lockgate.spark.messages.Messages;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogUtils;
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.jdbc.JDBCRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.FileTable;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** The relations of a plan, as Python knows them. */
final class Relations {
  private static final String CHAR_OR_VARCHAR = "__CHAR_VARCHAR_TYPE_STRING";
  private static final String METADATA = "__metadata_col";

  private Relations() {}

  /**
   * A relation that needs a decision about its rows; null for any other plan, and for tables about
   * which Python decides when it returns their rows.
   */
  static ObjectNode describe(LogicalPlan plan) {
    if (!(plan instanceof MultiInstanceRelation) || !plan.children().isEmpty()) {
      return null;
    }
    ObjectNode found = named(plan);
    if (found != null) {
      ArrayNode columns = found.putArray("columns");
      for (Attribute column : output(plan)) {
        if (!isMetadata(column)) {
          columns.addObject().put("name", column.name()).put("type", type(column));
        }
      }
    }
    return found;
  }

  /**
   * Tells whether a relation is one of those that Python decides about when it is asked for rows.
   */
  static boolean isOurs(LogicalPlan plan) {
    return plan instanceof DataSourceV2Relation relation
        && (relation.table() instanceof LockgateTable || relation.table() instanceof SystemTable);
  }

  /** Tells whether a stream reads a relation of ours: Python decides about each batch. */
  static boolean isFollowed(LogicalPlan plan) {
    if (plan instanceof StreamingDataSourceV2ScanRelation scan) {
      return scan.relation().table() instanceof LockgateTable;
    }
    return plan instanceof StreamingDataSourceV2Relation relation
        && relation.table() instanceof LockgateTable;
  }

  /** A relation that is asked for rows under the rights of its reader; null for any other. */
  static ObjectNode describeOwn(LogicalPlan plan) {
    if (!isOurs(plan) || describe(plan) != null) {
      return null;
    }
    Table table = ((DataSourceV2Relation) plan).table();
    ObjectNode found = Bridge.object().put("kind", "system");
    found.set(
        "table",
        table instanceof LockgateTable ours
            ? Messages.tree(ours.request())
            : Messages.tree(((SystemTable) table).request()));
    found.putArray("columns");
    return found;
  }

  /** The node for options that a reader gives a table of another catalog; none without options. */
  static List<ObjectNode> options(LogicalPlan plan, ObjectNode described) {
    boolean isTable = described.get("kind").asText().equals("table");
    Set<String> names = isTable ? given(plan) : Set.of();
    if (names.isEmpty()) {
      return List.of();
    }
    boolean isOfFiles =
        plan instanceof StreamingRelation
            || plan instanceof LogicalRelation relation
                && relation.relation() instanceof HadoopFsRelation;
    ObjectNode found = Bridge.object().put("node", "ReadOptions");
    found.put("setting", String.join(",", names).toLowerCase(Locale.ROOT));
    found.put("source", isOfFiles ? "files" : null).putArray("locations");
    ObjectNode target = described.deepCopy();
    found.putArray("targets").add(target.put("ours", false).putNull("table"));
    return List.of(found);
  }

  private static Set<String> given(LogicalPlan plan) {
    if (plan instanceof StreamingRelation stream) {
      return added(stream.dataSource().options(), stream.dataSource().catalogTable());
    } else if (plan instanceof LogicalRelation relation
        && relation.relation() instanceof HadoopFsRelation files) {
      return added(files.options(), relation.catalogTable());
    } else if (plan instanceof LogicalRelation relation
        && relation.relation() instanceof JDBCRelation database) {
      return added(database.jdbcOptions().parameters(), relation.catalogTable());
    }
    boolean hasOptions =
        plan instanceof DataSourceV2Relation || plan instanceof StreamingRelationV2;
    return hasOptions ? options(plan).keySet() : Set.of();
  }

  /** The options that a table of the session's catalog does not have itself, or has as another. */
  private static Set<String> added(
      scala.collection.immutable.Map<String, String> options, Option<CatalogTable> table) {
    Map<String, String> own = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    if (table.isDefined()) {
      own.putAll(CollectionConverters.asJava(table.get().storage().properties()));
      if (table.get().storage().locationUri().isDefined()) {
        own.put("path", CatalogUtils.URIToString(table.get().storage().locationUri().get()));
      }
    }
    Set<String> found = new TreeSet<>(String.CASE_INSENSITIVE_ORDER);
    CollectionConverters.asJava(options)
        .forEach(
            (name, value) -> {
              if (!value.equals(own.get(name))) {
                found.add(name);
              }
            });
    return found;
  }

  /** The options of a relation of ours, also of one that a stream reads. */
  static CaseInsensitiveStringMap options(LogicalPlan plan) {
    return plan instanceof StreamingRelationV2 stream
        ? stream.extraOptions()
        : ((DataSourceV2Relation) plan).options();
  }

  /** A relation of ours with another value of an option, or without it. */
  static LogicalPlan withOption(LogicalPlan plan, String name, JsonNode value) {
    Map<String, String> options = new HashMap<>(options(plan).asCaseSensitiveMap());
    options.keySet().removeIf(name::equalsIgnoreCase);
    if (!value.isNull()) {
      options.put(name, value.asText());
    }
    Object[] parts = CollectionConverters.asJava(plan.productIterator().toSeq()).toArray();
    for (int i = 0; i < parts.length; i++) {
      parts[i] =
          parts[i] instanceof CaseInsensitiveStringMap
              ? new CaseInsensitiveStringMap(options)
              : parts[i];
    }
    return plan.makeCopy(parts);
  }

  /**
   * Lets Python record what an optimized query reads of files and of other catalogs. The store
   * records what is read of its own tables.
   */
  static void recordReads(LogicalPlan plan) {
    Map<LogicalPlan, ObjectNode> read = new LinkedHashMap<>();
    Set<ExprId> used = new HashSet<>();
    output(plan).forEach(column -> used.add(column.exprId()));
    new PlanWalk(each -> noteRead(each, read, used)).over(plan);
    if (read.isEmpty()) {
      return;
    }
    ObjectNode request = Bridge.object();
    ArrayNode every = request.putArray("used");
    read.forEach(
        (leaf, relation) -> {
          ArrayNode columns = every.addObject().put("whole", false).putArray("columns");
          for (Attribute column : output(leaf)) {
            if (used.contains(column.exprId()) && !isMetadata(column)) {
              columns.add(column.name());
            }
          }
          ObjectNode found = (ObjectNode) every.get(every.size() - 1);
          found.set("relation", relation);
          if (leaf instanceof LogicalRelation files
              && files.relation() instanceof HadoopFsRelation folder) {
            noteLinks(FilePlaces.of(folder.location()).leaving(), found, every);
          }
        });
    request.put("statement", StatementText.start(plan, StatementText.LONGEST));
    Bridge.ask("governance.record", request);
  }

  /** Adds the files that links lead to, which have to be open as a whole. */
  private static void noteLinks(Set<String> leaving, ObjectNode read, ArrayNode every) {
    if (!leaving.isEmpty()) {
      ObjectNode linked = read.deepCopy().put("whole", true);
      linked.set(
          "relation",
          ofPaths(List.copyOf(leaving)).set("columns", read.get("relation").get("columns")));
      every.add(linked);
    }
  }

  /** Always null: the walk goes on to the parts, of which barriers hide theirs. */
  private static LogicalPlan noteRead(
      LogicalPlan plan, Map<LogicalPlan, ObjectNode> read, Set<ExprId> used) {
    if (plan instanceof SealedBarrier) {
      new PlanWalk(each -> noteRead(each, read, used)).over(Barrier.of(plan));
    }
    ObjectNode streamed = StreamRights.readBy(plan);
    ObjectNode found = streamed != null || isOfStream(plan) ? streamed : describe(plan);
    if (found != null && !found.get("kind").asText().equals("lockgate")) {
      read.put(plan, found);
    }
    CollectionConverters.asJava(plan.references().toSeq())
        .forEach(column -> used.add(column.exprId()));
    return null;
  }

  private static ObjectNode named(LogicalPlan plan) {
    if (plan instanceof DataSourceV2Relation relation) {
      return ofV2(relation.table(), relation.catalog(), relation.identifier());
    } else if (plan instanceof StreamingRelationV2 relation) {
      return ofV2(relation.table(), relation.catalog(), relation.identifier());
    } else if (plan instanceof HiveTableRelation relation) {
      return ofV1(relation.tableMeta().identifier());
    } else if (plan instanceof LogicalRelation relation) {
      return relation.catalogTable().isDefined()
          ? ofV1(relation.catalogTable().get().identifier())
          : relation.relation() instanceof HadoopFsRelation files
              ? ofPaths(CollectionConverters.asJava(files.location().rootPaths()))
              : ofSource(relation.relation().getClass().getSimpleName());
    } else if (plan instanceof StreamingRelation relation) {
      return ofStream(relation.dataSource());
    } else if (plan instanceof StreamingDataSourceV2ScanRelation scan && !isFollowed(plan)) {
      StreamingDataSourceV2Relation relation = scan.relation();
      return ofV2(relation.table(), relation.catalog(), relation.identifier());
    }
    return isOfStream(plan) && !isFollowed(plan) ? ofSource(plan.nodeName()) : null;
  }

  private static ObjectNode ofStream(DataSource source) {
    if (source.catalogTable().isDefined()) {
      return ofV1(source.catalogTable().get().identifier());
    }
    return PathRights.isOfFiles(source.providingClass())
        ? ofPaths(StreamRights.folders(source))
        : ofSource(source.providingClass().getSimpleName().replace("$", ""));
  }

  static boolean isOfStream(LogicalPlan plan) {
    return plan.nodeName().startsWith("Streaming");
  }

  private static ObjectNode ofV2(
      Table table, Option<CatalogPlugin> catalog, Option<Identifier> name) {
    if (table instanceof LockgateTable ours) {
      if (ours.view() != null) {
        return null;
      }
      ObjectNode found = Bridge.object().put("kind", "lockgate");
      found.set("table", Messages.tree(ours.request()));
      return found;
    } else if (table instanceof SystemTable) {
      return null;
    } else if (table instanceof FileTable files && catalog.isEmpty()) {
      return ofPaths(CollectionConverters.asJava(files.fileIndex().rootPaths()));
    } else if (catalog.isEmpty() || name.isEmpty()) {
      return ofSource(table.getClass().getSimpleName());
    }
    String space = String.join(".", name.get().namespace());
    return Bridge.object()
        .put("kind", "table")
        .put("catalog", catalog.get().name())
        .put("name", space.isEmpty() ? name.get().name() : space + "." + name.get().name());
  }

  static ObjectNode ofV1(TableIdentifier name) {
    String database = name.database().isDefined() ? name.database().get() + "." : "default.";
    return Bridge.object()
        .put("kind", "table")
        .put("catalog", name.catalog().getOrElse(() -> "spark_catalog"))
        .put("name", database + name.table());
  }

  static ObjectNode ofPaths(List<?> paths) {
    ObjectNode found = Bridge.object().put("kind", "path");
    ArrayNode texts = found.putArray("paths");
    paths.forEach(path -> texts.add(path.toString()));
    return found;
  }

  /** A relation that is read from elsewhere; its name alone, since its options may hold secrets. */
  private static ObjectNode ofSource(String name) {
    return Bridge.object().put("kind", "source").put("name", name);
  }

  static List<Attribute> output(LogicalPlan plan) {
    return CollectionConverters.asJava(plan.output());
  }

  static boolean isMetadata(Attribute column) {
    return column.metadata().contains(METADATA);
  }

  private static String type(Attribute column) {
    return column.metadata().contains(CHAR_OR_VARCHAR)
        ? column.metadata().getString(CHAR_OR_VARCHAR)
        : column.dataType().sql();
  }
}

package io.lockgate.spark.lineage;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.PythonHandle;
import io.lockgate.spark.catalog.LockgateTable;
import io.lockgate.spark.catalog.SystemTable;
import io.lockgate.spark.messages.TableRequest;
import java.net.URI;
import java.util.List;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.deploy.SparkHadoopUtil;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NamedRelation;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.ResolvedPersistentView;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;
import org.apache.spark.sql.execution.streaming.runtime.StreamingExecutionRelation;
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelation;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Datasets that plans name, as Python reads them: type, catalog and parts of the name, or a path.
 */
public final class Datasets {
  private Datasets() {}

  /** The dataset that a leaf of a plan reads; null if it has its rows from elsewhere. */
  private static ObjectNode read(LogicalPlan plan) {
    if (plan instanceof DataSourceV2ScanRelation scan) {
      return read((LogicalPlan) scan.relation());
    }
    if (plan instanceof StreamingDataSourceV2ScanRelation scan) {
      return read(scan.relation());
    }
    if (plan instanceof DataSourceV2Relation relation) {
      return table(relation.table(), relation.catalog(), relation.identifier());
    }
    if (plan instanceof StreamingDataSourceV2Relation relation) {
      return table(relation.table(), relation.catalog(), relation.identifier());
    }
    if (plan instanceof StreamingRelationV2 relation) {
      return table(relation.table(), relation.catalog(), relation.identifier());
    }
    if (plan instanceof ResolvedTable named) {
      return table(named.table(), Option.apply(named.catalog()), Option.apply(named.identifier()));
    }
    if (plan instanceof LogicalRelation relation) {
      return relation(relation);
    }
    if (plan instanceof HiveTableRelation relation) {
      return named(relation.tableMeta().identifier());
    }
    if (plan instanceof StreamingExecutionRelation relation) {
      return path(relation.source().toString());
    }
    if (plan instanceof StreamingRelation relation) {
      return path(relation.sourceName());
    }
    if (plan instanceof LogicalRDD rows && rows.stream().isDefined()) {
      return path(rows.stream().get().toString());
    }
    return null;
  }

  /** The datasets that a leaf of a plan reads: each of the folders, if there are several. */
  public static List<ObjectNode> all(LogicalPlan plan) {
    if (plan instanceof LogicalRelation relation
        && relation.catalogTable().isEmpty()
        && relation.stream().isEmpty()
        && relation.relation() instanceof HadoopFsRelation files) {
      return CollectionConverters.asJava(files.location().rootPaths()).stream()
          .map(root -> path(root.toString()))
          .toList();
    }
    ObjectNode only = read(plan);
    return only == null ? List.of() : List.of(only);
  }

  /** Tells whether a leaf has rows that were computed earlier, by a plan that it does not show. */
  static boolean hidesItsOrigin(LogicalPlan plan) {
    String name = plan.getClass().getSimpleName();
    return plan instanceof LogicalRDD
        || name.equals("InMemoryRelation")
        || name.equals("ExternalRDD");
  }

  /** The dataset that a command names, or null. */
  static ObjectNode target(Object plan) {
    if (plan instanceof ResolvedIdentifier named) {
      return named(named.catalog(), named.identifier());
    }
    if (plan instanceof ResolvedTable named) {
      return table(named.table(), Option.apply(named.catalog()), Option.apply(named.identifier()));
    }
    if (plan instanceof ResolvedPersistentView named) {
      return named(named.catalog(), named.identifier()).put("type", "view");
    }
    if (plan instanceof SubqueryAlias alias) {
      return target(alias.child());
    }
    if (plan instanceof LogicalPlan leaf) {
      ObjectNode read = read(leaf);
      if (read != null) {
        return read;
      }
    }
    return plan instanceof NamedRelation named ? path(named.name()) : null;
  }

  /** A dataset with all that its message declares. */
  private static ObjectNode dataset(String type, String catalog, String handle) {
    ObjectNode out = Bridge.object().put("type", type).put("catalog", catalog);
    out.putArray("parts");
    return out.put("handle", handle).putNull("id").putNull("version").putNull("schema");
  }

  private static ArrayNode parts(ObjectNode dataset) {
    return (ArrayNode) dataset.get("parts");
  }

  static ObjectNode named(CatalogPlugin catalog, Identifier identifier) {
    String handle = catalog instanceof PythonHandle handled ? handled.handle() : null;
    ObjectNode out = dataset("table", catalog.name(), handle);
    List.of(identifier.namespace()).forEach(parts(out)::add);
    parts(out).add(identifier.name());
    return out;
  }

  static ObjectNode database(CatalogPlugin catalog, Seq<String> name) {
    String handle = catalog instanceof PythonHandle handled ? handled.handle() : null;
    ObjectNode out = dataset("database", catalog.name(), handle);
    CollectionConverters.asJava(name).forEach(parts(out)::add);
    return out;
  }

  static ObjectNode named(TableIdentifier identifier) {
    String catalog =
        identifier.catalog().isDefined() ? identifier.catalog().get() : "spark_catalog";
    ObjectNode out = dataset("table", catalog, null);
    if (identifier.database().isDefined()) {
      parts(out).add(identifier.database().get());
    }
    parts(out).add(identifier.table());
    return out;
  }

  /** A dataset as programs name it: {@code catalog.database.table}, or a path. */
  public static ObjectNode named(String text) {
    return alone("named", text);
  }

  static ObjectNode path(String path) {
    // Spark's own texts of file streams, such as FileStreamSource[file:/in].
    String plain = path.replaceFirst("^File\\w+\\[(.*)\\]$", "$1");
    return alone("file", plain.startsWith("/") ? qualified(plain) : plain);
  }

  /** A path as the file system that it is on names it: those who read it name it so. */
  private static String qualified(String path) {
    URI standard = FileSystem.getDefaultUri(SparkHadoopUtil.get().conf());
    return new Path(path).makeQualified(standard, new Path("/")).toString();
  }

  /** The folder that a command describes. */
  static ObjectNode folder(CatalogStorageFormat storage) {
    return path(String.valueOf(storage.locationUri().getOrElse(() -> "?")));
  }

  private static ObjectNode alone(String type, String name) {
    ObjectNode out = dataset(type, null, null);
    parts(out).add(name);
    return out;
  }

  /** A table that a program wrote to in its own way: the request that Python was asked by. */
  static ObjectNode committed(TableRequest request) {
    ObjectNode out = dataset("table", request.catalogName(), request.catalog());
    request.namespace().forEach(parts(out)::add);
    parts(out).add(request.name());
    return out.put("id", request.tableId()).put("schema", request.schemaId());
  }

  private static ObjectNode table(
      Table table, Option<CatalogPlugin> catalog, Option<Identifier> identifier) {
    Table inner = table instanceof RowLevelOperationTable rows ? rows.table() : table;
    if (inner instanceof SystemTable) {
      return null; // it tells of tables, and holds nothing of them
    }
    if (inner instanceof LockgateTable own) {
      ObjectNode out = committed(own.request());
      // A table that is being made has no version.
      return own.version() == null ? out : out.put("version", Long.parseLong(own.version()));
    }
    if (identifier.isDefined() && catalog.isDefined()) {
      return named(catalog.get(), identifier.get());
    }
    return path(inner.name());
  }

  private static ObjectNode relation(LogicalRelation relation) {
    if (relation.catalogTable().isDefined()) {
      return named(relation.catalogTable().get().identifier());
    }
    if (relation.stream().isDefined()) {
      return path(relation.stream().get().toString()); // its files are others in each batch
    }
    return path(relation.relation().getClass().getSimpleName());
  }
}

package io.lockgate.spark.governance;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.catalog.LockgateTable;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.PersistedView$;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.ResolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.ResolvedPersistentView;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.command.CreateViewCommand;
import org.apache.spark.sql.execution.command.ResetCommand;
import org.apache.spark.sql.execution.command.SetCommand;
import org.apache.spark.sql.execution.datasources.InsertIntoDataSourceCommand;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Option;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/** The nodes of a plan, as Python knows them: their classes, and the names that they are about. */
final class Statements {
  private static final String SPARK = "org.apache.spark.sql.";
  private static final String OURS = "io.lockgate.spark";

  private Statements() {}

  /** The name that Python knows the class of a node by; those of others than Spark are whole. */
  static String name(LogicalPlan plan) {
    if (plan instanceof CreateViewCommand view && view.viewType() != PersistedView$.MODULE$) {
      return "CreateTemporaryView";
    }
    String name = plan.getClass().getName();
    return name.startsWith(SPARK)
        ? name.substring(name.lastIndexOf('.') + 1).replace("$", "")
        : name;
  }

  /** Describes a node. */
  static ObjectNode describe(LogicalPlan plan) {
    ObjectNode found = Bridge.object().put("node", name(plan)).put("setting", setting(plan));
    ArrayNode targets = found.putArray("targets");
    if (plan instanceof Command) {
      CollectionConverters.asJava(plan.productIterator().toSeq())
          .forEach(part -> add(targets, part));
      written(targets, plan);
    }
    return found;
  }

  /** The conf that a statement changes; null for any other, for one that only looks, or for all. */
  private static String setting(LogicalPlan plan) {
    if (plan instanceof SetCommand set && set.kv().isDefined()) {
      Tuple2<String, Option<String>> pair = set.kv().get();
      return pair._2().isDefined() ? pair._1() : null;
    }
    return plan instanceof ResetCommand reset ? reset.config().getOrElse(() -> null) : null;
  }

  private static void add(ArrayNode targets, Object part) {
    if (part instanceof Option<?> option) {
      option.foreach(
          each -> {
            add(targets, each);
            return null;
          });
    } else if (part instanceof ResolvedTable found) {
      ObjectNode target = named(targets, found.catalog(), found.identifier());
      if (found.table() instanceof LockgateTable ours) {
        target.set("table", ours.request());
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
    } else if (part instanceof TableIdentifier found) {
      ObjectNode name = Relations.ofV1(found);
      add(targets, "table", name.get("catalog").asText(), name.get("name").asText(), false);
    }
  }

  /** Adds the table or the files that a statement writes to. */
  private static void written(ArrayNode targets, LogicalPlan plan) {
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
    if (found instanceof DataSourceV2Relation relation
        && relation.table() instanceof LockgateTable) {
      add(targets, "table", null, relation.table().name(), true);
    } else if (found instanceof DataSourceV2Relation relation
        && relation.catalog().isDefined()
        && relation.identifier().isDefined()) {
      named(targets, relation.catalog().get(), relation.identifier().get());
    } else if (found instanceof LogicalRelation relation && relation.catalogTable().isDefined()) {
      add(targets, relation.catalogTable().get());
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
    return target.put("name", name).put("ours", isOurs).putNull("table");
  }
}

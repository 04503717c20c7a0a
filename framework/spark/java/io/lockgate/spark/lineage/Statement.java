package io.lockgate.spark.lineage;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.analysis.ResolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.CacheTable;
import org.apache.spark.sql.catalyst.plans.logical.CacheTableAsSelect;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.CommandResult;
import org.apache.spark.sql.catalyst.plans.logical.CreateTableAsSelect;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.DropColumns;
import org.apache.spark.sql.catalyst.plans.logical.DropNamespace;
import org.apache.spark.sql.catalyst.plans.logical.DropTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.RenameColumn;
import org.apache.spark.sql.catalyst.plans.logical.RenameTable;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceTableAsSelect;
import org.apache.spark.sql.catalyst.plans.logical.RowLevelWrite;
import org.apache.spark.sql.catalyst.plans.logical.TruncateTable;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.plans.logical.WithCTE;
import org.apache.spark.sql.execution.command.AlterViewAsCommand;
import org.apache.spark.sql.execution.command.CreateDataSourceTableAsSelectCommand;
import org.apache.spark.sql.execution.command.CreateViewCommand;
import org.apache.spark.sql.execution.command.DropTableCommand;
import org.apache.spark.sql.execution.command.InsertIntoDataSourceDirCommand;
import org.apache.spark.sql.execution.command.LoadDataCommand;
import org.apache.spark.sql.execution.datasources.InsertIntoDataSourceCommand;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand;
import org.apache.spark.sql.execution.streaming.sources.WriteToMicroBatchDataSource;
import org.apache.spark.sql.execution.streaming.sources.WriteToMicroBatchDataSourceV1;
import scala.Option;
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A statement that was executed: what it does, to which dataset, and the query that its rows come
 * from.
 *
 * <p>{@code byName} says that the columns of the query are those of the target by their names;
 * {@code query} is null where no rows come. {@code loaded} are files that become a part of the
 * target as they are.
 */
record Statement(
    String kind,
    ObjectNode target,
    LogicalPlan query,
    List<String> columns,
    boolean byName,
    ObjectNode loaded) {
  Statement(
      String kind, ObjectNode target, LogicalPlan query, List<String> columns, boolean byName) {
    this(kind, target, query, columns, byName, null);
  }

  private static Statement of(
      String kind, ObjectNode target, LogicalPlan query, Seq<Attribute> columns) {
    return new Statement(kind, target, query, names(columns), false);
  }

  private static Statement without(String kind, ObjectNode target) {
    return new Statement(kind, target, null, List.of(), false);
  }

  private static List<String> names(Seq<Attribute> output) {
    return CollectionConverters.asJava(output).stream().map(Attribute::name).toList();
  }

  /** The statements of an analysed plan: several of FROM with more than one INSERT. */
  static List<Statement> all(LogicalPlan plan) {
    if (plan instanceof CommandResult result) {
      return all(result.commandLogicalPlan());
    }
    if (plan instanceof Union union && isCommand(union)) {
      return CollectionConverters.asJava(union.children()).stream()
          .flatMap(each -> all(each).stream())
          .toList();
    }
    Statement only = of(plan);
    return only == null ? List.of() : List.of(only);
  }

  /** Tells whether a plan does something, rather than only answer with rows. */
  static boolean isCommand(LogicalPlan plan) {
    return plan instanceof Command
        || plan instanceof WithCTE with && isCommand(with.plan())
        || plan instanceof Union union
            && CollectionConverters.asJava(union.children()).stream()
                .allMatch(Statement::isCommand);
  }

  /** The statement of an analysed plan; null for what touches no data, as SET and SHOW. */
  static Statement of(LogicalPlan plan) {
    if (plan instanceof CommandResult result) {
      return of(result.commandLogicalPlan());
    }
    if (plan instanceof WithCTE with && with.plan() instanceof Command) {
      Statement inner = of(with.plan());
      return inner == null || inner.query == null
          ? inner
          : new Statement(
              inner.kind, inner.target, with.withNewPlan(inner.query), inner.columns, inner.byName);
    }
    Statement written = write(plan);
    if (written == null) {
      written = file(plan);
    }
    if (written != null) {
      return written;
    }
    return plan instanceof Command ? definition(plan) : select(plan);
  }

  private static Statement select(LogicalPlan plan) {
    return of("SELECT", Datasets.path("result").put("type", "result"), plan, plan.output());
  }

  private static Statement write(LogicalPlan plan) {
    if (plan instanceof RowLevelWrite write) {
      return new Statement(
          write.operation().command().toString(),
          Datasets.target(write.originalTable()),
          write.query(),
          names(write.query().output()),
          true);
    }
    if (plan instanceof V2WriteCommand write) {
      return of(
          write instanceof AppendData ? "INSERT" : "INSERT_OVERWRITE",
          Datasets.target(write.table()),
          write.query(),
          ((LogicalPlan) write.table()).output());
    }
    if (plan instanceof CreateTableAsSelect create) {
      return of(
          "CREATE_TABLE_AS_SELECT",
          Datasets.target(create.name()),
          create.query(),
          create.query().output());
    }
    if (plan instanceof ReplaceTableAsSelect create) {
      return of(
          "REPLACE_TABLE_AS_SELECT",
          Datasets.target(create.name()),
          create.query(),
          create.query().output());
    }
    if (plan instanceof WriteToMicroBatchDataSource write) {
      return of("STREAM", sink(write), write.query(), write.query().output());
    }
    if (plan instanceof WriteToMicroBatchDataSourceV1 write) {
      return of("STREAM", sink(write), write.query(), write.query().output());
    }
    return null;
  }

  private static ObjectNode sink(WriteToMicroBatchDataSource write) {
    // Some versions of Spark have an Option here, others the relation itself.
    Object first = write.productElement(0);
    Object relation = first instanceof Option<?> some ? some.getOrElse(() -> null) : first;
    ObjectNode named = relation == null ? null : Datasets.target(relation);
    return named != null ? named : Datasets.path(write.table().name()).put("type", "sink");
  }

  private static ObjectNode sink(WriteToMicroBatchDataSourceV1 write) {
    if (write.catalogTable().isDefined()) {
      return Datasets.named(write.catalogTable().get().identifier());
    }
    String text = write.sink().toString();
    String folder = text.startsWith("FileSink[") ? text.substring(9, text.length() - 1) : null;
    return folder == null
        ? Datasets.path(write.sink().getClass().getSimpleName()).put("type", "sink")
        : Datasets.path(folder);
  }

  private static Statement file(LogicalPlan plan) {
    if (plan instanceof CreateDataSourceTableAsSelectCommand create) {
      return new Statement(
          "CREATE_TABLE_AS_SELECT",
          Datasets.named(create.table().identifier()),
          create.query(),
          CollectionConverters.asJava(create.outputColumnNames()),
          false);
    }
    if (plan instanceof InsertIntoHadoopFsRelationCommand insert) {
      boolean isTable = insert.catalogTable().isDefined();
      String kind = insert.mode() == SaveMode.Overwrite ? "INSERT_OVERWRITE" : "INSERT";
      return new Statement(
          isTable ? kind : "EXPORT",
          isTable
              ? Datasets.named(insert.catalogTable().get().identifier())
              : Datasets.path(insert.outputPath().toString()),
          insert.query(),
          CollectionConverters.asJava(insert.outputColumnNames()),
          false);
    }
    if (plan instanceof SaveIntoDataSourceCommand save) {
      // Its options may hold a password.
      String format = save.dataSource().getClass().getSimpleName();
      return of("EXPORT", Datasets.path(format), save.query(), save.query().output());
    }
    if (plan instanceof InsertIntoDataSourceDirCommand save) {
      return of("EXPORT", Datasets.folder(save.storage()), save.query(), save.query().output());
    }
    if (plan instanceof InsertIntoDataSourceCommand insert) {
      return of(
          insert.overwrite() ? "INSERT_OVERWRITE" : "INSERT",
          Datasets.target(insert.logicalRelation()),
          insert.query(),
          ((LogicalPlan) insert.logicalRelation()).output());
    }
    return Writings.of(plan);
  }

  private static Statement definition(LogicalPlan plan) {
    if (plan instanceof CreateViewCommand view) {
      List<String> columns =
          view.userSpecifiedColumns().isEmpty()
              ? names(view.plan().output())
              : CollectionConverters.asJava(view.userSpecifiedColumns()).stream()
                  .map(pair -> pair._1())
                  .toList();
      return new Statement(
          "CREATE_VIEW",
          Datasets.named(view.name()).put("type", "view"),
          view.plan(),
          columns,
          false);
    }
    if (plan instanceof AlterViewAsCommand view) {
      return of(
          "ALTER_VIEW",
          Datasets.named(view.name()).put("type", "view"),
          view.query(),
          view.query().output());
    }
    if (plan instanceof CacheTableAsSelect cache) {
      return cached(cache.tempViewName().toString(), cache.plan());
    }
    if (plan instanceof CacheTable cache) {
      // By the table's own name it would be found in place of the table.
      return cached("cache of " + cache.multipartIdentifier().mkString("."), cache.table());
    }
    if (plan instanceof RenameTable rename
        && rename.child() instanceof ResolvedTable table
        && !rename.isView()) {
      return renamed(rename, table);
    }
    if (plan instanceof LoadDataCommand load) {
      return Writings.load(load);
    }
    if (plan instanceof DeleteFromTable delete) {
      return without("DELETE", Datasets.target(delete.table()));
    }
    if (plan instanceof TruncateTable truncate) {
      return without("TRUNCATE", Datasets.target(truncate.table()));
    }
    if (plan instanceof DropTable drop) {
      return without("DROP_TABLE", Datasets.target(drop.child()));
    }
    if (plan instanceof DropNamespace drop && drop.child() instanceof ResolvedNamespace named) {
      return without("DROP_DATABASE", Datasets.database(named.catalog(), named.namespace()));
    }
    if (plan instanceof DropTableCommand drop) {
      return drop.isView()
          ? without("DROP_VIEW", Datasets.named(drop.tableName()).put("type", "view"))
          : without("DROP_TABLE", Datasets.named(drop.tableName()));
    }
    return changed(plan);
  }

  private static Statement cached(String name, LogicalPlan query) {
    return of("CACHE", Datasets.path(name).put("type", "cache"), query, query.output());
  }

  /** A renamed table: its columns come from those under the old name. */
  private static Statement renamed(RenameTable rename, ResolvedTable table) {
    ObjectNode target = Datasets.target(table);
    List<String> parts = CollectionConverters.asJava(rename.newName());
    ObjectNode made = target.deepCopy();
    made.putNull("version");
    // The new name may leave out the database, and may begin with the catalog.
    int given = parts.size();
    String database = target.get("parts").get(0).asText();
    made.putArray("parts")
        .add(given > 1 ? parts.get(given - 2) : database)
        .add(parts.get(given - 1));
    return of("RENAME_TABLE", made, table, table.output());
  }

  /** ALTER statements, by the names that Spark gives them. */
  private static Statement changed(LogicalPlan plan) {
    String name = plan.getClass().getSimpleName();
    boolean changes =
        List.of(
                "DropColumns",
                "RenameColumn",
                "AddColumns",
                "AlterColumns",
                "CreateTable",
                "CreateTableLike")
            .contains(name);
    if (!changes || plan.children().isEmpty()) {
      return null;
    }
    ObjectNode target = Datasets.target(plan.children().head());
    String kind = name.replaceAll("(?<=[a-z])([A-Z])", "_$1").toUpperCase();
    return target == null ? null : new Statement(kind, target, null, changedColumns(plan), false);
  }

  /** Columns that are dropped; of one that is renamed the old name and the new one, as texts. */
  private static List<String> changedColumns(LogicalPlan plan) {
    if (plan instanceof DropColumns drop) {
      return CollectionConverters.asJava(drop.columnsToDrop()).stream()
          .map(column -> Sources.text(CollectionConverters.asJava(column.name())))
          .toList();
    }
    if (plan instanceof RenameColumn rename) {
      List<String> old = CollectionConverters.asJava(rename.column().name());
      List<String> renamed = new ArrayList<>(old);
      renamed.set(old.size() - 1, rename.newName());
      return List.of(Sources.text(old), Sources.text(renamed));
    }
    return List.of();
  }
}

package io.lockgate.spark.rules.writes;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.catalog.LockgateTable;
import io.lockgate.spark.enforcement.HeldQuery;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.analysis.UnresolvedInlineTable;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Clauses of INSERT and MERGE that Spark takes for every table, and reads in its own way or not at
 * all.
 *
 * <ul>
 *   <li>{@code INSERT INTO t PARTITION (p) SELECT ...}: the last columns of the query are those of
 *       the partition, as in Hive and in Spark's own tables. For a table of a catalog Spark takes
 *       the table's order.
 *   <li>{@code WITH SCHEMA EVOLUTION}: Spark drops the clause, and new columns with it, where a
 *       table does not support it. It is refused.
 * </ul>
 *
 * <p>Spark resolves an INSERT as soon as its query and its table are. So {@link #HOLDING} marks the
 * query before anything is resolved, and {@link #RESOLVING} takes the mark off.
 */
public final class InsertClauses extends Rule<LogicalPlan> {
  /** Marks the queries of INSERTs with such clauses. */
  public static final Rule<LogicalPlan> HOLDING = new InsertClauses(InsertClauses::held);

  /** Orders or refuses them, once the table is known. */
  public static final Rule<LogicalPlan> RESOLVING = new InsertClauses(InsertClauses::resolved);

  private static final String EVOLUTION = "withSchemaEvolution";

  // Scala's maps know the order of so many entries.
  private static final int KEPT_ORDER = 4;

  private final AbstractPartialFunction<LogicalPlan, LogicalPlan> change;

  private InsertClauses(UnaryOperator<LogicalPlan> change) {
    this.change =
        new AbstractPartialFunction<>() {
          @Override
          public boolean isDefinedAt(LogicalPlan plan) {
            return plan instanceof InsertIntoStatement || plan instanceof MergeIntoTable;
          }

          @Override
          public LogicalPlan apply(LogicalPlan plan) {
            return change.apply(plan);
          }
        };
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.resolveOperatorsUp(change);
  }

  private static LogicalPlan held(LogicalPlan plan) {
    return plan instanceof InsertIntoStatement insert
            && (namesDynamicPartitions(insert) || evolves(insert))
            && !(insert.query() instanceof PendingQuery || insert.query() instanceof HeldQuery)
        ? with(insert, new PendingQuery(insert.query()))
        : plan;
  }

  private static LogicalPlan resolved(LogicalPlan plan) {
    if (plan instanceof MergeIntoTable merge) {
      LockgateTable table = tableOf(merge.targetTable());
      if (table != null && evolves(merge)) {
        throw refusedEvolution("MERGE", table);
      }
      return merge;
    }
    InsertIntoStatement insert = (InsertIntoStatement) plan;
    if (!(insert.query() instanceof PendingQuery pending)
        || insert.table() instanceof UnresolvedRelation) {
      return insert;
    }
    LockgateTable table = tableOf(insert.table());
    if (table == null) {
      return with(insert, pending.child());
    } else if (evolves(insert)) {
      throw refusedEvolution("INSERT", table);
    }
    LogicalPlan ordered = ordered(pending.child(), order(insert, table));
    return ordered == null ? insert : with(insert, ordered);
  }

  private static InsertIntoStatement with(InsertIntoStatement insert, LogicalPlan query) {
    return (InsertIntoStatement)
        insert.withNewChildren(CollectionConverters.asScala(List.of(query)).toIndexedSeq());
  }

  private static LockgateTable tableOf(LogicalPlan plan) {
    if (plan instanceof SubqueryAlias alias) {
      return tableOf(alias.child());
    }
    return plan instanceof DataSourceV2Relation relation
            && relation.table() instanceof LockgateTable table
        ? table
        : null;
  }

  // --- WITH SCHEMA EVOLUTION ---

  /** By the part's name: INSERT has the clause since a later version of Spark than MERGE. */
  private static boolean evolves(LogicalPlan plan) {
    return IntStream.range(0, plan.productArity())
        .anyMatch(
            i ->
                plan.productElementName(i).equals(EVOLUTION)
                    && Boolean.TRUE.equals(plan.productElement(i)));
  }

  private static RuntimeException refusedEvolution(String statement, LockgateTable table) {
    return Bridge.failure(
        statement
            + " WITH SCHEMA EVOLUTION does not add columns to table "
            + table.name()
            + ": ALTER TABLE it first, or CALL sys.merge_schema, then repeat the statement without"
            + " the clause");
  }

  // --- PARTITION (p) ---

  /** Queries whose columns have names, by a list or BY NAME, need no order. */
  private static boolean namesDynamicPartitions(InsertIntoStatement insert) {
    return !insert.byName()
        && insert.userSpecifiedCols().isEmpty()
        && CollectionConverters.asJava(insert.partitionSpec()).values().stream()
            .anyMatch(Option::isEmpty);
  }

  /** The position in the query of each column that the table takes from it, in its order. */
  private static int[] order(InsertIntoStatement insert, LockgateTable table) {
    List<String> columns = new ArrayList<>(List.of(table.structType().fieldNames()));
    List<String> partitions = new ArrayList<>(table.partitionKeys());
    List<String> dynamic = new ArrayList<>();
    CollectionConverters.asJava(insert.partitionSpec())
        .forEach(
            (key, value) -> {
              String column = column(key, table);
              if (column == null) {
                return; // Spark refuses it by name
              } else if (value.isEmpty()) {
                dynamic.add(column);
              } else {
                columns.remove(column);
                partitions.remove(column);
              }
            });
    if (insert.partitionSpec().size() > KEPT_ORDER) {
      dynamic.sort(Comparator.comparing(partitions::indexOf));
    }
    if (!dynamic.equals(partitions)) {
      throw Bridge.failure(
          "INSERT INTO "
              + table.name()
              + " PARTITION names the columns without a value as ("
              + String.join(", ", dynamic)
              + "): name all of them in the table's order, ("
              + String.join(", ", partitions)
              + "); the query's last columns are those");
    }
    List<String> query = new ArrayList<>(columns);
    query.removeAll(partitions);
    query.addAll(partitions);
    return columns.stream().mapToInt(query::indexOf).toArray();
  }

  private static String column(String name, LockgateTable table) {
    return table.partitionKeys().stream()
        .filter(key -> (Boolean) SQLConf.get().resolver().apply(key, name))
        .findFirst()
        .orElse(null);
  }

  /**
   * The query with its columns in an order, or null where they are not known yet. Values and
   * expressions move as they are, since DEFAULT is that of the column at its place.
   */
  private static LogicalPlan ordered(LogicalPlan query, int[] order) {
    if (query instanceof UnresolvedInlineTable values) {
      List<Seq<Expression>> rows =
          CollectionConverters.asJava(values.rows()).stream()
              .map(row -> moved(row, order))
              .toList();
      return new UnresolvedInlineTable(
          moved(values.names(), order), CollectionConverters.asScala(rows).toSeq());
    } else if (query instanceof Project project && hasDefault(project)) {
      return new Project(moved(project.projectList(), order), project.child());
    } else if (!query.resolved()) {
      return null;
    }
    Seq<Attribute> output = query.output();
    if (output.length() != order.length) {
      return query; // Spark says how many there should be
    }
    return new Project(moved(cast(output), order), query);
  }

  private static boolean hasDefault(Project project) {
    return CollectionConverters.asJava(project.projectList()).stream()
        .anyMatch(each -> each.toString().replace("'", "").equalsIgnoreCase("DEFAULT"));
  }

  private static <T> Seq<T> moved(Seq<T> items, int[] order) {
    if (items.length() != order.length) {
      return items;
    }
    return CollectionConverters.asScala(IntStream.of(order).mapToObj(i -> items.apply(i)).toList())
        .toSeq();
  }

  @SuppressWarnings("unchecked") // attributes are named expressions
  private static Seq<NamedExpression> cast(Seq<Attribute> attributes) {
    return (Seq<NamedExpression>) (Seq<?>) attributes;
  }
}

package io.lockgate.spark.rules.changes;

import io.lockgate.spark.catalog.LockgateTable;
import io.lockgate.spark.scan.RowView;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.StartsWith;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.logical.Except;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.DataTypes;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The difference of two states as rows with their kinds: the rows of the later state that the
 * earlier one does not have, deletions too, and as -D the rows of the earlier one that are gone.
 * Python's {@code system.row_kinds} says the same.
 */
final class KindDifference {
  private final DataSourceV2Relation before;
  private final DataSourceV2Relation after;
  private final Set<String> keys;

  KindDifference(DataSourceV2Relation before, DataSourceV2Relation after, LockgateTable table) {
    this.before = before;
    this.after = after;
    this.keys = new LinkedHashSet<>(table.primaryKey());
    if (!keys.isEmpty()) {
      keys.addAll(table.partitionKeys());
    }
  }

  /** The plan, whose columns are those of the later state. */
  LogicalPlan plan() {
    LogicalPlan first = before.newInstance();
    LogicalPlan gone = before.newInstance();
    LogicalPlan last = after.newInstance();
    List<LogicalPlan> parts =
        keys.isEmpty()
            ? List.of(new Except(after, first, true), asDeleted(new Except(gone, last, true)))
            : List.of(
                without(after, first, alike(after, first)),
                asDeleted(without(added(gone), last, ofOneKey(gone, last))));
    return new Union(seq(parts), false, false);
  }

  private static LogicalPlan without(LogicalPlan rows, LogicalPlan others, Expression same) {
    return new Join(rows, others, LeftAnti$.MODULE$, Option.apply(same), JoinHint.NONE());
  }

  /** The same values as a row and as a deletion are not alike. */
  private static Expression alike(LogicalPlan one, LogicalPlan other) {
    List<Attribute> left = columns(one);
    List<Attribute> right = columns(other);
    Expression found = new EqualNullSafe(retracts(kind(one)), retracts(kind(other)));
    for (int i = 0; i < left.size(); i++) {
      if (!isKind(left.get(i))) {
        found = new And(found, new EqualNullSafe(left.get(i), right.get(i)));
      }
    }
    return found;
  }

  private Expression ofOneKey(LogicalPlan one, LogicalPlan other) {
    List<Attribute> left = columns(one);
    List<Attribute> right = columns(other);
    Expression found = null;
    for (int i = 0; i < left.size(); i++) {
      if (keys.contains(left.get(i).name())) {
        Expression equal = new EqualNullSafe(left.get(i), right.get(i));
        found = found == null ? equal : new And(found, equal);
      }
    }
    return found;
  }

  private static LogicalPlan added(LogicalPlan rows) {
    return new Filter(new Not(retracts(kind(rows))), rows);
  }

  private static LogicalPlan asDeleted(LogicalPlan rows) {
    List<NamedExpression> shown = new ArrayList<>();
    for (Attribute column : columns(rows)) {
      shown.add(isKind(column) ? deleted(column) : column);
    }
    return new Project(seq(shown), rows);
  }

  private static Alias deleted(Attribute kind) {
    return new Alias(
        Literal.create("-D", DataTypes.StringType),
        kind.name(),
        NamedExpression.newExprId(),
        seq(List.<String>of()),
        Option.empty(),
        seq(List.<String>of()));
  }

  private static Expression retracts(Expression kind) {
    return new StartsWith(kind, Literal.create("-", DataTypes.StringType));
  }

  private static Attribute kind(LogicalPlan rows) {
    return columns(rows).stream().filter(KindDifference::isKind).findFirst().orElseThrow();
  }

  private static boolean isKind(Attribute column) {
    return column.name().equals(RowView.ROW_KIND);
  }

  private static List<Attribute> columns(LogicalPlan plan) {
    return CollectionConverters.asJava(plan.output());
  }

  private static <T> Seq<T> seq(List<T> items) {
    return CollectionConverters.asScala(items).toSeq();
  }
}

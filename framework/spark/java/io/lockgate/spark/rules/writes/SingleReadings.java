package io.lockgate.spark.rules.writes;

import io.lockgate.spark.catalog.LockgateTable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Exists;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.OuterReference;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationDef;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeRows;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.RowLevelWrite;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.write.RowLevelOperation.Command;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Function1;
import scala.collection.immutable.IndexedSeq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Lets MERGE, UPDATE and DELETE read once what could answer differently the second time: files,
 * tables of other sources, rows of a program, functions of users, {@code rand()}.
 *
 * <p>Spark reads the source of a MERGE to find the files or ranges with rows to change, and again
 * to join it with them; it reads the subqueries of an UPDATE's condition up to three times. A row
 * that only the later reading has would count as new where the table has it.
 *
 * <p>Runs when Spark has rewritten the statement and everybody has decided about rights.
 */
public final class SingleReadings extends Rule<LogicalPlan> {
  public static final SingleReadings RULE = new SingleReadings();

  private static final String FROM_SOURCE = "__row_from_source";

  private SingleReadings() {}

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return write(plan) == null ? plan : new Statement(plan).changed(plan);
  }

  private static LogicalPlan write(LogicalPlan plan) {
    boolean isOurs =
        plan instanceof RowLevelWrite
            && plan instanceof V2WriteCommand command
            && command.table() instanceof DataSourceV2Relation relation
            && relation.table() instanceof RowLevelOperationTable rows
            && rows.table() instanceof LockgateTable;
    if (isOurs) {
      return plan;
    }
    for (LogicalPlan child : CollectionConverters.asJava(plan.children())) {
      LogicalPlan found = write(child); // below WITH
      if (found != null) {
        return found;
      }
    }
    return null;
  }

  /** Copies of one plan in a statement, whatever ids their columns have, are read together. */
  private static final class Statement {
    private final Repeatable repeatable;
    private final Map<QueryPlan<?>, SingleReading> readings = new HashMap<>();

    Statement(LogicalPlan plan) {
      Map<Long, LogicalPlan> common = new HashMap<>();
      collect(plan, common);
      this.repeatable = new Repeatable(common);
    }

    private static void collect(LogicalPlan plan, Map<Long, LogicalPlan> common) {
      if (plan instanceof CTERelationDef definition) {
        common.put(definition.id(), definition.child());
      }
      CollectionConverters.asJava(plan.children()).forEach(child -> collect(child, common));
      CollectionConverters.asJava(plan.subqueries()).forEach(query -> collect(query, common));
    }

    LogicalPlan changed(LogicalPlan plan) {
      if (!(plan instanceof RowLevelWrite write)) {
        return plan.mapChildren(child -> write(child) == null ? child : changed(child));
      } else if (write.operation().command() == Command.MERGE) {
        return merged(plan);
      }
      // What only the new values of an UPDATE read is read once anyway.
      CollectionConverters.asJava(plan.expressions()).forEach(this::find);
      return readings.isEmpty() ? plan : plan.transformAllExpressions(new Subqueries(this::within));
    }

    // --- MERGE ---

    /** A MERGE whose source is only joined, because it finds no files by it, stays as it is. */
    private LogicalPlan merged(LogicalPlan plan) {
      Join join = join(plan);
      if (join == null
          || !(join.right() instanceof Project marked)
          || repeatable.is(marked.child())
          || CollectionConverters.asJava(plan.expressions()).stream()
              .noneMatch(each -> each.exists(Exists.class::isInstance))) {
        return plan;
      }
      int[] columns = columns(plan, join, marked);
      SingleReading reading = new SingleReading();
      List<NamedExpression> kept = new ArrayList<>();
      IntStream.of(columns).forEach(i -> kept.add(marked.projectList().apply(i)));
      kept.add(marked.projectList().last());
      LogicalPlan once =
          new Project(
              CollectionConverters.asScala(kept).toSeq(), once(marked.child(), columns, reading));
      LogicalPlan joined =
          plan.transformDown(new Replacing(join, join.withNewChildren(list(join.left(), once))));
      return joined.transformExpressions(
          new Subqueries(
              query ->
                  query instanceof Filter filter
                      ? filter.withNewChildren(list(once(filter.child(), columns, reading)))
                      : query));
    }

    private static Join join(LogicalPlan plan) {
      if (plan instanceof MergeRows rows
          && rows.child() instanceof Join join
          && join.right() instanceof Project marked
          && marked.projectList().last() instanceof Alias last
          && last.name().equals(FROM_SOURCE)) {
        return join;
      }
      return plan.children().length() == 1 ? join(plan.children().head()) : null;
    }

    /** The positions of the source's columns that the statement uses. */
    private static int[] columns(LogicalPlan plan, Join join, Project marked) {
      Set<ExprId> used = new HashSet<>();
      for (LogicalPlan each = plan; each != join.right(); ) {
        CollectionConverters.asJava(each.expressions())
            .forEach(
                expression ->
                    expression
                        .references()
                        .foreach(
                            attribute -> {
                              used.add(attribute.exprId());
                              return null;
                            }));
        each = each == join ? join.right() : each.children().head();
      }
      List<Attribute> source = CollectionConverters.asJava(marked.child().output());
      return IntStream.range(0, source.size())
          .filter(i -> used.contains(source.get(i).exprId()))
          .toArray();
    }

    private static ReadOnce once(LogicalPlan source, int[] columns, SingleReading reading) {
      if (columns.length == source.output().length()) {
        return new ReadOnce(source, reading);
      }
      List<NamedExpression> kept = new ArrayList<>();
      IntStream.of(columns).forEach(i -> kept.add(source.output().apply(i)));
      return new ReadOnce(new Project(CollectionConverters.asScala(kept).toSeq(), source), reading);
    }

    // --- conditions ---

    private void find(Expression expression) {
      if (expression instanceof SubqueryExpression query) {
        parts(query.plan());
      }
      CollectionConverters.asJava(expression.children()).forEach(this::find);
    }

    /** The largest parts of a query that can be read for themselves, and could differ. */
    private void parts(LogicalPlan query) {
      if (repeatable.is(query)) {
        return;
      } else if (!query.exists(Statement::namesOuterColumns)) {
        readings.put(query.canonicalized(), new SingleReading());
        return;
      }
      CollectionConverters.asJava(query.children()).forEach(this::parts);
      CollectionConverters.asJava(query.expressions()).forEach(this::find);
    }

    private LogicalPlan within(LogicalPlan query) {
      SingleReading reading = readings.get(query.canonicalized());
      if (reading != null) {
        return new ReadOnce(query, reading);
      }
      return query.mapChildren(this::within).transformExpressions(new Subqueries(this::within));
    }

    private static boolean namesOuterColumns(LogicalPlan plan) {
      return CollectionConverters.asJava(plan.expressions()).stream()
          .anyMatch(each -> each.exists(OuterReference.class::isInstance));
    }
  }

  private static IndexedSeq<LogicalPlan> list(LogicalPlan... plans) {
    return CollectionConverters.asScala(List.of(plans)).toIndexedSeq();
  }

  /** Puts one plan in the place of another. */
  private static final class Replacing extends AbstractPartialFunction<LogicalPlan, LogicalPlan> {
    private final LogicalPlan replaced;
    private final LogicalPlan by;

    Replacing(LogicalPlan replaced, LogicalPlan by) {
      this.replaced = replaced;
      this.by = by;
    }

    @Override
    public boolean isDefinedAt(LogicalPlan plan) {
      return plan == replaced;
    }

    @Override
    @SuppressWarnings("unchecked") // a plan takes the place of one
    public <A extends LogicalPlan, B> B applyOrElse(A plan, Function1<A, B> otherwise) {
      return plan == replaced ? (B) by : otherwise.apply(plan);
    }
  }

  /** Changes the queries of expressions. */
  private static final class Subqueries extends AbstractPartialFunction<Expression, Expression> {
    private final UnaryOperator<LogicalPlan> change;

    Subqueries(UnaryOperator<LogicalPlan> change) {
      this.change = change;
    }

    @Override
    public boolean isDefinedAt(Expression expression) {
      return expression instanceof SubqueryExpression;
    }

    @Override
    @SuppressWarnings({"unchecked", "rawtypes"}) // a query takes the place of one
    public <A extends Expression, B> B applyOrElse(A found, Function1<A, B> otherwise) {
      return found instanceof SubqueryExpression query
          ? (B) ((PlanExpression) query).withNewPlan(change.apply(query.plan()))
          : otherwise.apply(found);
    }
  }
}

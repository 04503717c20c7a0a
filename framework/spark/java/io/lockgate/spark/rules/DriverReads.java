package io.lockgate.spark.rules;

import io.lockgate.spark.files.WordMatch;
import io.lockgate.spark.files.batches.SmallAggregate;
import io.lockgate.spark.scan.DriverRead;
import io.lockgate.spark.scan.LockgateScan;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.ApplyFunctionExpression;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BinaryArithmetic;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Like;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Lower;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.StringPredicate;
import org.apache.spark.sql.catalyst.planning.PhysicalAggregation;
import org.apache.spark.sql.catalyst.planning.PhysicalOperation;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.ReturnAnswer;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Queries for single values of a column, such as {@code WHERE id = 5}, or for a text, of which the
 * files to read are few and small: the driver reads them while it plans the query, because a job
 * takes longer than they do.
 *
 * <p>A strategy and not a {@code LocalScan}: a scan would have to take the filters over before it
 * knows the columns, and Spark offers the values of a join's keys to the other side only where it
 * sees a filter. Here the filters are Spark's own expressions, so that rows are compared as in a
 * task.
 */
public final class DriverReads extends SparkStrategy {
  /** Keeps nothing, so that all sessions share it. */
  public static final DriverReads STRATEGY = new DriverReads();

  private DriverReads() {}

  @Override
  public Seq<SparkPlan> apply(LogicalPlan plan) {
    SparkPlan read =
        plan instanceof ReturnAnswer answer ? read(answer.child(), true) : read(plan, false);
    return CollectionConverters.asScala(read == null ? List.<SparkPlan>of() : List.of(read))
        .toSeq();
  }

  private static SparkPlan read(LogicalPlan plan, boolean isWholeQuery) {
    return plan instanceof Aggregate aggregate ? aggregated(aggregate) : rows(plan, isWholeQuery);
  }

  /** Few rows need no tasks to be counted or summed; where that fails, a task raises the error. */
  private static SparkPlan aggregated(Aggregate plan) {
    var parts = PhysicalAggregation.unapply(plan);
    SparkPlan child = parts.isEmpty() ? null : rows(parts.get()._4(), true);
    // Values alone are those of a runtime filter, whose plan Spark wants to be adaptive.
    if (!(child instanceof DriverScanExec scan) || parts.get()._2().isEmpty()) {
      return null;
    }
    List<NamedExpression> wanted = CollectionConverters.asJava(parts.get()._3());
    SmallAggregate aggregate =
        SmallAggregate.of(
            CollectionConverters.asJava(parts.get()._1()),
            CollectionConverters.asJava(parts.get()._2()),
            wanted,
            scan.output());
    try {
      return aggregate == null ? null : scan.aggregated(wanted, aggregate);
    } catch (RuntimeException failure) {
      return null;
    }
  }

  private static SparkPlan rows(LogicalPlan plan, boolean isWholeQuery) {
    if (!(plan instanceof Project || plan instanceof Filter)) {
      return null;
    }
    var operation = PhysicalOperation.unapply(plan);
    if (operation.isEmpty()
        || !(operation.get()._3() instanceof DataSourceV2ScanRelation relation)
        || !(relation.scan() instanceof LockgateScan scan)
        // Rows of a table that is joined by buckets stay where they are.
        || relation.keyGroupedPartitioning().isDefined() && !isWholeQuery) {
      return null;
    }
    List<NamedExpression> wanted = CollectionConverters.asJava(operation.get()._1());
    List<Expression> conditions = CollectionConverters.asJava(operation.get()._2());
    boolean suits =
        conditions.stream()
                .anyMatch(condition -> namesValues(condition, scan.table().partitionKeys()))
            && conditions.stream().allMatch(DriverReads::isSimple)
            && wanted.stream().allMatch(column -> isSimple((Expression) column))
            && scan.fitsOnDriver();
    DriverRead found =
        suits ? scan.readOnDriver(conditions, wanted, attributes(relation.output())) : null;
    return found == null ? null : DriverScanExec.of(wanted, found);
  }

  private static Seq<Attribute> attributes(Seq<AttributeReference> columns) {
    return CollectionConverters.asScala(
            List.<Attribute>copyOf(CollectionConverters.asJava(columns)))
        .toSeq();
  }

  /**
   * Tells whether only single values of a column pass; partition columns do not count, whose values
   * many rows share.
   */
  private static boolean namesValues(Expression condition, List<String> partitionKeys) {
    if (condition instanceof And and) {
      return namesValues(and.left(), partitionKeys) || namesValues(and.right(), partitionKeys);
    } else if (condition instanceof Or or) {
      return namesValues(or.left(), partitionKeys) && namesValues(or.right(), partitionKeys);
    } else if (condition instanceof EqualTo || condition instanceof EqualNullSafe) {
      Expression left = ((BinaryComparison) condition).left();
      Expression right = ((BinaryComparison) condition).right();
      return isColumn(left, partitionKeys) && right instanceof Literal
          || isColumn(right, partitionKeys) && left instanceof Literal;
    } else if (condition instanceof In in) {
      return isColumn(in.value(), partitionKeys)
          && CollectionConverters.asJava(in.list()).stream().allMatch(Literal.class::isInstance);
    }
    return condition instanceof InSet in && isColumn(in.child(), partitionKeys)
        || isSearch(condition, partitionKeys);
  }

  /** Tells whether only values pass that have some text, which indexes find in few files. */
  private static boolean isSearch(Expression condition, List<String> partitionKeys) {
    boolean searches =
        condition instanceof StringPredicate || condition instanceof Like || isMatch(condition);
    Expression value = searches ? condition.children().apply(0) : null;
    Expression column = value instanceof Lower lower ? lower.child() : value;
    return searches
        && isColumn(column, partitionKeys)
        && condition.children().apply(1) instanceof Literal;
  }

  private static boolean isMatch(Expression condition) {
    return condition instanceof ApplyFunctionExpression call
        && call.function() instanceof WordMatch.Bound;
  }

  private static boolean isColumn(Expression expression, List<String> partitionKeys) {
    return expression instanceof AttributeReference column
        && !partitionKeys.contains(column.name());
  }

  /**
   * Tells whether an expression is one of those that are quick for every row, and the same wherever
   * they are computed.
   */
  private static boolean isSimple(Expression expression) {
    boolean simple =
        expression instanceof AttributeReference
            || expression instanceof Literal
            || expression instanceof Alias
            || expression instanceof BinaryComparison
            || expression instanceof And
            || expression instanceof Or
            || expression instanceof Not
            || expression instanceof IsNull
            || expression instanceof IsNotNull
            || expression instanceof In
            || expression instanceof InSet
            || expression instanceof StringPredicate
            || expression instanceof Like
            || expression instanceof Lower
            || isMatch(expression)
            || expression instanceof BinaryArithmetic
            || expression instanceof Cast
            || expression instanceof GetStructField;
    return simple
        && CollectionConverters.asJava(expression.children()).stream()
            .allMatch(DriverReads::isSimple);
  }
}

package io.lockgate.spark.rules.joins;

import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.types.Metadata;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Columns of plans, as Spark makes them. */
final class Columns {
  private Columns() {}

  /** A new column with a name. */
  static Alias named(Expression value, String name) {
    return new Alias(value, name, NamedExpression.newExprId(), none(), Option.empty(), none());
  }

  /** A value in place of a column, which others know by its id. */
  static NamedExpression inPlaceOf(Attribute column, Expression value, Metadata metadata) {
    return new Alias(
        value, column.name(), column.exprId(), column.qualifier(), Option.apply(metadata), none());
  }

  /** A column that was handed on, with its name in the statement. */
  static NamedExpression again(Attribute column, Attribute handedOn) {
    return handedOn.exprId().equals(column.exprId())
        ? handedOn.withQualifier(column.qualifier())
        : inPlaceOf(column, handedOn, null);
  }

  static LogicalPlan project(List<? extends NamedExpression> columns, LogicalPlan child) {
    return new Project(
        CollectionConverters.asScala(List.<NamedExpression>copyOf(columns)).toSeq(), child);
  }

  /** An expression with other columns where {@code of} has one for an id. */
  static Expression replaced(Expression expression, Function<ExprId, ? extends Expression> of) {
    if (expression instanceof Attribute column) {
      Expression other = of.apply(column.exprId());
      return other == null ? column : other;
    }
    return expression.mapChildren(child -> replaced(child, of));
  }

  /** A name that none of {@code taken} has, in whatever case, and which is taken from now on. */
  static String unique(String name, Set<String> taken) {
    String found = name;
    for (int n = 2; !taken.add(found.toLowerCase(Locale.ROOT)); n++) {
      found = name + "_" + n;
    }
    return found;
  }

  private static Seq<String> none() {
    return CollectionConverters.asScala(List.<String>of()).toSeq();
  }
}

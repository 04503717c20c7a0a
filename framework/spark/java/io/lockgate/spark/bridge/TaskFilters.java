package io.lockgate.spark.bridge;

import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.function.BiFunction;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.AlwaysFalse;
import org.apache.spark.sql.connector.expressions.filter.AlwaysTrue;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.sources.And;
import org.apache.spark.sql.sources.EqualNullSafe;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.GreaterThan;
import org.apache.spark.sql.sources.GreaterThanOrEqual;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.sources.IsNotNull;
import org.apache.spark.sql.sources.IsNull;
import org.apache.spark.sql.sources.LessThan;
import org.apache.spark.sql.sources.LessThanOrEqual;
import org.apache.spark.sql.sources.Not;
import org.apache.spark.sql.sources.Or;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Filters in the form for tasks, which skip row groups by them. A filter is sent whole or not at
 * all.
 *
 * <p>Spark's own {@code PredicateUtils.toV1} does not do that: of an OR with a side that it cannot
 * convert it keeps the other side alone, a stronger filter, and rows are lost. It cannot convert
 * {@code b > FALSE}, whose literal is a predicate, nor a comparison that begins with its literal.
 * It also makes java.sql.Date of dates, which has no name for some days of some zones.
 */
public final class TaskFilters {
  private TaskFilters() {}

  /** Those of the filters that tasks can use. */
  public static Filter[] of(Predicate[] predicates) {
    return Arrays.stream(predicates)
        .map(TaskFilters::whole)
        .flatMap(Optional::stream)
        .toArray(Filter[]::new);
  }

  private static Optional<Filter> whole(Expression predicate) {
    Expression[] children = predicate.children();
    return switch (predicate instanceof Predicate named ? named.name() : "") {
      case "AND" -> both(children, And::new);
      case "OR" -> both(children, Or::new);
      case "NOT" -> whole(children[0]).map(Not::new);
      case "IS_NULL" -> column(children[0]).map(IsNull::new);
      case "IS_NOT_NULL" -> column(children[0]).map(IsNotNull::new);
      case "=" -> comparison(children, EqualTo::new, EqualTo::new);
      case "<>" -> comparison(children, EqualTo::new, EqualTo::new).map(Not::new);
      case "<=>" -> comparison(children, EqualNullSafe::new, EqualNullSafe::new);
      case "<" -> comparison(children, LessThan::new, GreaterThan::new);
      case "<=" -> comparison(children, LessThanOrEqual::new, GreaterThanOrEqual::new);
      case ">" -> comparison(children, GreaterThan::new, LessThan::new);
      case ">=" -> comparison(children, GreaterThanOrEqual::new, LessThanOrEqual::new);
      case "IN" -> in(children);
      default -> Optional.empty();
    };
  }

  private static Optional<Filter> both(
      Expression[] sides, BiFunction<Filter, Filter, Filter> join) {
    return whole(sides[0]).flatMap(left -> whole(sides[1]).map(right -> join.apply(left, right)));
  }

  /** A comparison, {@code mirrored} where its literal comes first. */
  private static Optional<Filter> comparison(
      Expression[] sides,
      BiFunction<String, Object, Filter> made,
      BiFunction<String, Object, Filter> mirrored) {
    boolean first = sides[1] instanceof NamedReference;
    Literal<?> literal = literal(sides[first ? 0 : 1]);
    if (literal == null) {
      return Optional.empty();
    }
    return column(sides[first ? 1 : 0])
        .map(name -> (first ? mirrored : made).apply(name, value(literal)));
  }

  private static Optional<Filter> in(Expression[] children) {
    List<Object> values = new ArrayList<>();
    for (Expression child : Arrays.asList(children).subList(1, children.length)) {
      Literal<?> literal = literal(child);
      if (literal == null) {
        return Optional.empty();
      }
      values.add(value(literal));
    }
    return column(children[0]).map(name -> new In(name, values.toArray()));
  }

  private static Optional<String> column(Expression expression) {
    return expression instanceof NamedReference reference
        ? Optional.of(reference.toString())
        : Optional.empty();
  }

  /** A literal, or null. TRUE and FALSE are predicates wherever they stand, and literals too. */
  private static Literal<?> literal(Expression expression) {
    boolean isOther =
        expression instanceof Predicate
            && !(expression instanceof AlwaysTrue || expression instanceof AlwaysFalse);
    return expression instanceof Literal<?> literal && !isOther ? literal : null;
  }

  private static Object value(Literal<?> literal) {
    Object value = literal.value();
    if (value instanceof UTF8String text) {
      return text.toString();
    } else if (value instanceof Decimal number) {
      return number.toJavaBigDecimal();
    }
    return value != null && literal.dataType() instanceof DateType
        ? LocalDate.ofEpochDay((Integer) value)
        : value;
  }
}

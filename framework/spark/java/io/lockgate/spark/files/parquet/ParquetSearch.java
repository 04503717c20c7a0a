package io.lockgate.spark.files.parquet;

import java.math.BigDecimal;
import java.time.LocalDate;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.parquet.filter2.predicate.FilterApi;
import org.apache.parquet.filter2.predicate.FilterPredicate;
import org.apache.parquet.filter2.predicate.Operators;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.Type;
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

/**
 * Filters as a predicate by which Parquet leaves out row groups and pages; rows that pass are
 * filtered again by Spark.
 *
 * <p>A filter is taken whole or not at all. Floating-point columns are not compared, since
 * statistics leave NaN out, which Spark takes for the greatest number; nor are timestamps, nor
 * columns whose type was altered since the file was written.
 */
public final class ParquetSearch {
  private static final int INTEGER_BITS = 32;

  private final MessageType file;
  private final Map<String, String> names;
  private final Filter[] filters;

  /** {@code names} are the columns whose type is that of the file, with their names there. */
  public ParquetSearch(MessageType file, Map<String, String> names, Filter[] filters) {
    this.file = file;
    this.names = names;
    this.filters = filters;
  }

  /** The predicate, or null where no filter can be used. */
  public FilterPredicate predicate() {
    return Arrays.stream(filters)
        .map(this::whole)
        .filter(each -> each != null)
        .reduce(FilterApi::and)
        .orElse(null);
  }

  private FilterPredicate whole(Filter filter) {
    if (filter instanceof And and) {
      FilterPredicate left = whole(and.left());
      FilterPredicate right = whole(and.right());
      return left == null || right == null ? null : FilterApi.and(left, right);
    } else if (filter instanceof Or or) {
      FilterPredicate left = whole(or.left());
      FilterPredicate right = whole(or.right());
      return left == null || right == null ? null : FilterApi.or(left, right);
    } else if (filter instanceof Not not) {
      FilterPredicate inside = whole(not.child());
      return inside == null ? null : FilterApi.not(inside);
    } else if (filter instanceof In in) {
      return in.values().length == 0 ? null : compare(in.attribute(), Operator.IN, in.values());
    } else if (filter instanceof IsNull absent) {
      return compare(absent.attribute(), Operator.EQUAL, (Object) null);
    } else if (filter instanceof IsNotNull present) {
      return compare(present.attribute(), Operator.NOT_EQUAL, (Object) null);
    } else if (filter instanceof EqualNullSafe equal) {
      return compare(equal.attribute(), Operator.EQUAL, equal.value());
    }
    return comparison(filter);
  }

  private FilterPredicate comparison(Filter filter) {
    // A comparison with null holds for no row; Spark has folded it before, and what is left of it
    // is not worth a case.
    if (filter instanceof EqualTo equal && equal.value() != null) {
      return compare(equal.attribute(), Operator.EQUAL, equal.value());
    } else if (filter instanceof LessThan less && less.value() != null) {
      return compare(less.attribute(), Operator.LESS, less.value());
    } else if (filter instanceof LessThanOrEqual less && less.value() != null) {
      return compare(less.attribute(), Operator.AT_MOST, less.value());
    } else if (filter instanceof GreaterThan greater && greater.value() != null) {
      return compare(greater.attribute(), Operator.GREATER, greater.value());
    } else if (filter instanceof GreaterThanOrEqual greater && greater.value() != null) {
      return compare(greater.attribute(), Operator.AT_LEAST, greater.value());
    }
    return null;
  }

  private enum Operator {
    EQUAL,
    NOT_EQUAL,
    LESS,
    AT_MOST,
    GREATER,
    AT_LEAST,
    IN
  }

  private FilterPredicate compare(String column, Operator operator, Object... values) {
    String name = names.get(column);
    // Parquet takes a dot for the way into a struct.
    if (name == null || name.indexOf('.') >= 0 || !file.getType(name).isPrimitive()) {
      return null;
    }
    PrimitiveType type = file.getType(name).asPrimitiveType();
    if (type.isRepetition(Type.Repetition.REPEATED)) {
      return null;
    }
    LogicalTypeAnnotation meaning = type.getLogicalTypeAnnotation();
    return switch (type.getPrimitiveTypeName()) {
      case BOOLEAN ->
          operator == Operator.EQUAL || operator == Operator.NOT_EQUAL
              ? equality(operator, FilterApi.booleanColumn(name), (Boolean) values[0])
              : null;
      case INT32 ->
          ordered(operator, FilterApi.intColumn(name), numbers(values, meaning, Integer[]::new));
      case INT64 ->
          meaning instanceof LogicalTypeAnnotation.TimestampLogicalTypeAnnotation
              ? null
              : ordered(
                  operator, FilterApi.longColumn(name), numbers(values, meaning, Long[]::new));
      case BINARY ->
          meaning instanceof LogicalTypeAnnotation.StringLogicalTypeAnnotation
              ? ordered(operator, FilterApi.binaryColumn(name), texts(values))
              : null;
      default -> null;
    };
  }

  private static <
          T extends Comparable<T>, C extends Operators.Column<T> & Operators.SupportsEqNotEq>
      FilterPredicate equality(Operator operator, C column, T value) {
    return operator == Operator.EQUAL
        ? FilterApi.eq(column, value)
        : FilterApi.notEq(column, value);
  }

  private static <T extends Comparable<T>, C extends Operators.Column<T> & Operators.SupportsLtGt>
      FilterPredicate ordered(Operator operator, C column, T[] values) {
    if (values == null) {
      return null;
    }
    return switch (operator) {
      case EQUAL -> FilterApi.eq(column, values[0]);
      case NOT_EQUAL -> FilterApi.notEq(column, values[0]);
      case LESS -> FilterApi.lt(column, values[0]);
      case AT_MOST -> FilterApi.ltEq(column, values[0]);
      case GREATER -> FilterApi.gt(column, values[0]);
      case AT_LEAST -> FilterApi.gtEq(column, values[0]);
      case IN -> {
        Set<T> all = new HashSet<>(Arrays.asList(values));
        yield all.contains(null) ? null : FilterApi.in(column, all);
      }
    };
  }

  /** Values as the numbers that a column keeps, or null if one has no such number. */
  private static <T extends Number & Comparable<T>> T[] numbers(
      Object[] values, LogicalTypeAnnotation meaning, java.util.function.IntFunction<T[]> array) {
    T[] numbers = array.apply(values.length);
    for (int i = 0; i < values.length; i++) {
      if (values[i] != null) {
        Long number = number(values[i], meaning);
        if (number == null) {
          return null;
        }
        put(numbers, i, number);
      }
    }
    return numbers;
  }

  private static void put(Object[] numbers, int at, long number) {
    numbers[at] = numbers instanceof Integer[] ? (Object) Math.toIntExact(number) : number;
  }

  private static Long number(Object value, LogicalTypeAnnotation meaning) {
    if (value instanceof LocalDate day) {
      return meaning instanceof LogicalTypeAnnotation.DateLogicalTypeAnnotation
          ? day.toEpochDay()
          : null;
    } else if (value instanceof BigDecimal decimal) {
      return meaning instanceof LogicalTypeAnnotation.DecimalLogicalTypeAnnotation kept
              && decimal.scale() == kept.getScale()
              && decimal.unscaledValue().bitLength() < INTEGER_BITS
          ? decimal.unscaledValue().longValueExact()
          : null;
    } else if (meaning == null
        || meaning instanceof LogicalTypeAnnotation.IntLogicalTypeAnnotation) {
      return value instanceof Integer
              || value instanceof Long
              || value instanceof Short
              || value instanceof Byte
          ? ((Number) value).longValue()
          : null;
    }
    return null;
  }

  private static Binary[] texts(Object[] values) {
    Binary[] texts = new Binary[values.length];
    for (int i = 0; i < values.length; i++) {
      if (values[i] != null && !(values[i] instanceof String)) {
        return null;
      }
      texts[i] = values[i] == null ? null : Binary.fromString((String) values[i]);
    }
    return texts;
  }
}

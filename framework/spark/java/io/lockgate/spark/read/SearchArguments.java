package io.lockgate.spark.read;

import io.lockgate.spark.files.Columns;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.sql.Date;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.ql.io.sarg.PredicateLeaf;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgument;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgumentFactory;
import org.apache.hadoop.hive.serde2.io.HiveDecimalWritable;
import org.apache.orc.TypeDescription;
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
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;

/**
 * Filters as an ORC search argument, which skips stripes and row groups; rows that pass are
 * filtered again by Spark.
 *
 * <p>Floating-point columns are compared only where a NaN that ORC's statistics leave out cannot be
 * lost, texts only where UTF-16, by which ORC compares them, has the order of UTF-8, by which they
 * lie in statistics; timestamps are not compared at all. ORC takes dates as java.sql.Date, so they
 * are compared from 1582 on, before which its calendar is another, and not where a zone skipped a
 * day.
 */
public final class SearchArguments {
  private static final LocalDate GREGORIAN = LocalDate.of(1582, 10, 15);
  static final SearchArguments NONE = new SearchArguments(new Filter[0], new StructType());

  private final Filter[] filters;
  private final Filter[] late;
  private final StructType schema;

  public SearchArguments(Filter[] filters, StructType schema) {
    this(filters, new Filter[0], schema);
  }

  /** With filters that were only known at run time, by which rows are left out. */
  SearchArguments(Filter[] filters, Filter[] late, StructType schema) {
    this.filters = filters;
    this.late = late;
    this.schema = schema;
  }

  Filter[] filters() {
    return filters;
  }

  /** The search argument with the file's own column names, or null where no filter can be used. */
  SearchArgument build(Columns columns) {
    SearchArgument.Builder builder = SearchArgumentFactory.newBuilder().startAnd();
    boolean any = false;
    for (Filter filter : filters) {
      any |= conjuncts(filter, builder, columns);
    }
    return any ? builder.end().build() : null;
  }

  /** The rows that all filters for single values leave; null where none can be used. */
  SearchedRows soughtRows(Columns columns) {
    List<SearchedRows.Sought> found = new ArrayList<>();
    for (Filter filter : filters) {
      sought(filter, columns, found);
    }
    for (Filter filter : late) {
      sought(filter, columns, found);
    }
    return found.isEmpty() ? null : new SearchedRows(found);
  }

  private void sought(Filter filter, Columns columns, List<SearchedRows.Sought> found) {
    if (filter instanceof And and) {
      sought(and.left(), columns, found);
      sought(and.right(), columns, found);
      return;
    }
    Object[] values = singleValues(filter);
    DataType type = values.length == 0 ? null : type(filter, columns);
    PredicateLeaf.Type leaf = type == null ? null : leafType(type);
    if (leaf == PredicateLeaf.Type.LONG) {
      long[] numbers =
          Arrays.stream(values).mapToLong(each -> ((Number) each).longValue()).toArray();
      found.add(SearchedRows.Sought.numbers(quoted(filter, columns), numbers));
    } else if (leaf == PredicateLeaf.Type.STRING && Arrays.stream(values).allMatch(this::isExact)) {
      byte[][] texts =
          Arrays.stream(values)
              .map(each -> ((String) each).getBytes(StandardCharsets.UTF_8))
              .toArray(byte[][]::new);
      found.add(SearchedRows.Sought.texts(quoted(filter, columns), texts));
    }
  }

  /** Bytes that are not UTF-8 have become a character that stands for any of them. */
  private boolean isExact(Object text) {
    return ((String) text).indexOf('\uFFFD') < 0;
  }

  /** The values one of which a filter asks for; none if it asks for something else, or for null. */
  private static Object[] singleValues(Filter filter) {
    if (filter instanceof In in) {
      // Nothing is equal to null.
      return Arrays.stream(in.values()).filter(Objects::nonNull).toArray();
    }
    Object value =
        filter instanceof EqualTo equal
            ? equal.value()
            : filter instanceof EqualNullSafe equal ? equal.value() : null;
    return value == null ? new Object[0] : new Object[] {value};
  }

  private boolean conjuncts(Filter filter, SearchArgument.Builder builder, Columns columns) {
    if (filter instanceof And and) {
      boolean left = conjuncts(and.left(), builder, columns);
      return conjuncts(and.right(), builder, columns) || left;
    }
    if (!usable(filter, columns, false)) {
      return false;
    }
    add(filter, builder, columns);
    return true;
  }

  private boolean usable(Filter filter, Columns columns, boolean negated) {
    if (filter instanceof And and) {
      return usable(and.left(), columns, negated) && usable(and.right(), columns, negated);
    } else if (filter instanceof Or or) {
      return usable(or.left(), columns, negated) && usable(or.right(), columns, negated);
    } else if (filter instanceof Not not) {
      return usable(not.child(), columns, !negated);
    } else if (filter instanceof IsNull || filter instanceof IsNotNull) {
      return type(filter, columns) != null;
    } else if (filter instanceof In in) {
      DataType type = type(filter, columns);
      return in.values().length > 0
          && Arrays.stream(in.values()).allMatch(value -> usable(filter, type, value, negated));
    } else if (filter instanceof EqualNullSafe equal) {
      return usable(filter, type(filter, columns), equal.value(), negated);
    }
    Object value = value(filter);
    return value != null && usable(filter, type(filter, columns), value, negated);
  }

  private static boolean usable(Filter filter, DataType type, Object value, boolean negated) {
    if (type == null || value == null || leafType(type) == null) {
      return false;
    } else if (type instanceof DoubleType || type instanceof FloatType) {
      double number = ((Number) value).doubleValue();
      boolean upwards = filter instanceof GreaterThan || filter instanceof GreaterThanOrEqual;
      return !negated && !upwards && !Double.isNaN(number) && number != 0;
    } else if (type instanceof DateType) {
      LocalDate day = (LocalDate) value;
      return day.isAfter(GREGORIAN) && Date.valueOf(day).toLocalDate().equals(day);
    } else if (type instanceof StringType) {
      return ((String) value).chars().allMatch(unit -> unit < Character.MIN_SURROGATE);
    }
    return true;
  }

  private static Object value(Filter filter) {
    if (filter instanceof EqualTo equal) {
      return equal.value();
    } else if (filter instanceof LessThan less) {
      return less.value();
    } else if (filter instanceof LessThanOrEqual less) {
      return less.value();
    } else if (filter instanceof GreaterThan greater) {
      return greater.value();
    } else if (filter instanceof GreaterThanOrEqual greater) {
      return greater.value();
    }
    return null;
  }

  /**
   * The type of a filter's column where the file has it, except padded text, whose statistics are
   * of trimmed values, and columns that are cast, whose statistics are of another type.
   */
  private DataType type(Filter filter, Columns columns) {
    String column = column(filter);
    TypeDescription file = columns.fileType(column);
    if (file == null
        || file.getCategory() == TypeDescription.Category.CHAR
        || columns.isCast(column)
        || !schema.getFieldIndex(column).isDefined()) {
      return null;
    }
    return schema.apply(column).dataType();
  }

  private static String column(Filter filter) {
    String name;
    if (filter instanceof In in) {
      // Spark looks for references in every value of the list, which may have many.
      name = in.attribute();
    } else {
      String[] references = filter.references();
      name = references.length == 1 ? references[0] : "";
    }
    boolean quoted = name.length() > 2 && name.startsWith("`") && name.endsWith("`");
    return quoted ? name.substring(1, name.length() - 1).replace("``", "`") : name;
  }

  /** The name that a filter's column has in the file, as ORC parses names. */
  private static String quoted(Filter filter, Columns columns) {
    return "`" + columns.fileName(column(filter)).replace("`", "``") + "`";
  }

  private void add(Filter filter, SearchArgument.Builder builder, Columns columns) {
    if (filter instanceof And and) {
      builder.startAnd();
      add(and.left(), builder, columns);
      add(and.right(), builder, columns);
      builder.end();
    } else if (filter instanceof Or or) {
      builder.startOr();
      add(or.left(), builder, columns);
      add(or.right(), builder, columns);
      builder.end();
    } else if (filter instanceof Not not) {
      builder.startNot();
      add(not.child(), builder, columns);
      builder.end();
    } else {
      addLeaf(filter, builder, columns);
    }
  }

  private void addLeaf(Filter filter, SearchArgument.Builder builder, Columns columns) {
    String name = quoted(filter, columns);
    DataType type = schema.apply(column(filter)).dataType();
    PredicateLeaf.Type leaf = leafType(type) == null ? PredicateLeaf.Type.STRING : leafType(type);
    if (filter instanceof IsNull) {
      builder.startAnd().isNull(name, leaf).end();
    } else if (filter instanceof IsNotNull) {
      builder.startNot().isNull(name, leaf).end();
    } else if (filter instanceof In in) {
      builder
          .startAnd()
          .in(name, leaf, Arrays.stream(in.values()).map(value -> literal(value, type)).toArray())
          .end();
    } else if (filter instanceof EqualNullSafe equal) {
      builder.startAnd().nullSafeEquals(name, leaf, literal(equal.value(), type)).end();
    } else if (filter instanceof EqualTo equal) {
      builder.startAnd().equals(name, leaf, literal(equal.value(), type)).end();
    } else if (filter instanceof LessThan less) {
      builder.startAnd().lessThan(name, leaf, literal(less.value(), type)).end();
    } else if (filter instanceof LessThanOrEqual less) {
      builder.startAnd().lessThanEquals(name, leaf, literal(less.value(), type)).end();
    } else if (filter instanceof GreaterThan greater) {
      builder.startNot().lessThanEquals(name, leaf, literal(greater.value(), type)).end();
    } else if (filter instanceof GreaterThanOrEqual greater) {
      builder.startNot().lessThan(name, leaf, literal(greater.value(), type)).end();
    }
  }

  private static PredicateLeaf.Type leafType(DataType type) {
    if (type instanceof ByteType
        || type instanceof ShortType
        || type instanceof IntegerType
        || type instanceof LongType) {
      return PredicateLeaf.Type.LONG;
    } else if (type instanceof FloatType || type instanceof DoubleType) {
      return PredicateLeaf.Type.FLOAT;
    } else if (type instanceof StringType) {
      return PredicateLeaf.Type.STRING;
    } else if (type instanceof BooleanType) {
      return PredicateLeaf.Type.BOOLEAN;
    } else if (type instanceof DecimalType) {
      return PredicateLeaf.Type.DECIMAL;
    } else if (type instanceof DateType) {
      return PredicateLeaf.Type.DATE;
    }
    return null;
  }

  private static Object literal(Object value, DataType type) {
    return switch (leafType(type)) {
      case LONG -> ((Number) value).longValue();
      case FLOAT -> ((Number) value).doubleValue();
      case DECIMAL -> new HiveDecimalWritable(HiveDecimal.create((BigDecimal) value));
      case DATE -> Date.valueOf((LocalDate) value);
      default -> value;
    };
  }
}

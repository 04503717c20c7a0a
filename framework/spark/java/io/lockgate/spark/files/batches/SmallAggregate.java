package io.lockgate.spark.files.batches;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BindReferences;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.InterpretedUnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Average;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.DeclarativeAggregate;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.catalyst.expressions.package$;
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils;
import org.apache.spark.sql.types.AtomicType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Counts, bounds, sums and averages of rows in memory, by Spark's own expressions. */
public final class SmallAggregate {
  /** A function of an aggregate, with its expressions bound to what they are computed from. */
  private record Function(
      Expression filter, List<Expression> initial, List<Expression> update, Expression evaluate) {
    Object[] start() {
      return initial.stream().map(each -> each.eval(null)).toArray();
    }

    Object[] updated(Object[] buffer, InternalRow row) {
      if (filter != null && !Boolean.TRUE.equals(filter.eval(row))) {
        return buffer;
      }
      InternalRow joined = new JoinedRow(new GenericInternalRow(buffer), row);
      return update.stream().map(each -> each.eval(joined)).toArray();
    }
  }

  private final UnsafeProjection keys;
  private final boolean grouped;
  private final List<Function> functions = new ArrayList<>();
  private final UnsafeProjection result;

  private SmallAggregate(
      List<NamedExpression> grouping,
      List<AggregateExpression> aggregates,
      List<NamedExpression> wanted,
      Seq<Attribute> columns) {
    grouped = !grouping.isEmpty();
    keys = projection(grouping, columns);
    for (AggregateExpression aggregate : aggregates) {
      functions.add(function(aggregate, columns));
    }
    List<Attribute> inputs = new ArrayList<>();
    grouping.forEach(key -> inputs.add(key.toAttribute()));
    aggregates.forEach(aggregate -> inputs.add(aggregate.resultAttribute()));
    result = projection(wanted, sequence(inputs));
  }

  /** Returns null for what only Spark's operators compute. */
  public static SmallAggregate of(
      List<NamedExpression> grouping,
      List<?> aggregates,
      List<NamedExpression> wanted,
      Seq<Attribute> columns) {
    boolean suits =
        grouping.stream().allMatch(key -> isPlainKey(((Expression) key).dataType()))
            && aggregates.stream().allMatch(SmallAggregate::isPlain);
    return suits
        ? new SmallAggregate(
            grouping,
            aggregates.stream().map(AggregateExpression.class::cast).toList(),
            wanted,
            columns)
        : null;
  }

  /**
   * Tells whether equal values are equal bytes; zeros, NaN and texts of some collations are not.
   */
  private static boolean isPlainKey(DataType type) {
    return type instanceof AtomicType
        && !(type instanceof FloatType || type instanceof DoubleType)
        && UnsafeRowUtils.isBinaryStable(type);
  }

  private static boolean isPlain(Object expression) {
    return expression instanceof AggregateExpression aggregate
        && !aggregate.isDistinct()
        && Stream.of(Count.class, Min.class, Max.class, Sum.class, Average.class)
            .anyMatch(kind -> kind.isInstance(aggregate.aggregateFunction()));
  }

  private static Function function(AggregateExpression aggregate, Seq<Attribute> columns) {
    DeclarativeAggregate function = (DeclarativeAggregate) aggregate.aggregateFunction();
    List<Attribute> buffer =
        List.copyOf(CollectionConverters.asJava(function.aggBufferAttributes()));
    List<Attribute> both = new ArrayList<>(buffer);
    both.addAll(CollectionConverters.asJava(columns));
    return new Function(
        aggregate.filter().isEmpty() ? null : bound(aggregate.filter().get(), columns),
        List.copyOf(CollectionConverters.asJava(function.initialValues())),
        CollectionConverters.asJava(function.updateExpressions()).stream()
            .map(each -> bound(each, sequence(both)))
            .toList(),
        bound(function.evaluateExpression(), sequence(buffer)));
  }

  /** Returns a row for each group, and one for no rows if there are no groups. */
  public List<InternalRow> rows(InternalRow[] input) {
    Map<UnsafeRow, Object[][]> groups = new LinkedHashMap<>();
    if (!grouped) {
      groups.put(keys.apply(InternalRow.empty()).copy(), start());
    }
    for (InternalRow row : input) {
      UnsafeRow key = keys.apply(row);
      Object[][] buffers = groups.get(key);
      if (buffers == null) {
        buffers = start();
        groups.put(key.copy(), buffers);
      }
      for (int i = 0; i < buffers.length; i++) {
        buffers[i] = functions.get(i).updated(buffers[i], row);
      }
    }
    List<InternalRow> found = new ArrayList<>();
    groups.forEach(
        (key, buffers) -> found.add(result.apply(new JoinedRow(key, evaluated(buffers))).copy()));
    return found;
  }

  private Object[][] start() {
    return functions.stream().map(Function::start).toArray(Object[][]::new);
  }

  private InternalRow evaluated(Object[][] buffers) {
    Object[] values = new Object[buffers.length];
    Arrays.setAll(
        values, i -> functions.get(i).evaluate().eval(new GenericInternalRow(buffers[i])));
    return new GenericInternalRow(values);
  }

  private static UnsafeProjection projection(List<?> expressions, Seq<Attribute> columns) {
    List<Expression> all =
        expressions.stream().map(each -> bound((Expression) each, columns)).toList();
    return InterpretedUnsafeProjection.createProjection(CollectionConverters.asScala(all).toSeq());
  }

  private static Expression bound(Expression expression, Seq<Attribute> columns) {
    return BindReferences.bindReference(expression, package$.MODULE$.AttributeSeq(columns), false);
  }

  private static Seq<Attribute> sequence(List<Attribute> columns) {
    return CollectionConverters.asScala(columns).toSeq();
  }
}

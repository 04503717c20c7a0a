package io.lockgate.spark.rules.joins;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The stream of a lookup join, with its keys as columns, and a name of its own for each column.
 *
 * <p>A condition on the stream alone says which rows look up at all. Where rows without a match are
 * kept, the others ask with a null key, which matches nothing.
 */
final class StreamKeys {
  private final LogicalPlan plan;
  private final Map<ExprId, String> names = new HashMap<>();
  private final Map<String, String> keys = new LinkedHashMap<>();
  private final Set<String> taken = new HashSet<>();

  StreamKeys(LogicalPlan stream, JoinCondition condition, boolean keepsAll) {
    List<NamedExpression> columns = new ArrayList<>();
    for (Attribute column : CollectionConverters.asJava(stream.output())) {
      columns.add(named(column));
    }
    Expression asks = keepsAll ? all(condition.onStream) : null;
    for (JoinCondition.Key key : condition.keys) {
      Expression value = asks == null ? key.stream() : masked(asks, key.stream());
      if (value instanceof Attribute column) {
        keys.put(key.column().name(), names.get(column.exprId()));
      } else {
        String name = Columns.unique("key_of_" + key.column().name(), taken);
        columns.add(Columns.named(value, name));
        keys.put(key.column().name(), name);
      }
      asks = null; // one key that is null is enough
    }
    LogicalPlan rows =
        keepsAll || condition.onStream.isEmpty()
            ? stream
            : new Filter(all(condition.onStream), stream);
    plan =
        columns.stream().allMatch(Attribute.class::isInstance)
            ? rows
            : Columns.project(columns, rows);
  }

  private NamedExpression named(Attribute column) {
    String name = Columns.unique(column.name(), taken);
    names.put(column.exprId(), name);
    return name.equals(column.name()) ? column : Columns.named(column, name);
  }

  private static Expression all(List<Expression> conditions) {
    return conditions.stream().reduce(And::new).orElse(null);
  }

  private static Expression masked(Expression asks, Expression key) {
    return new If(asks, key, Literal.create(null, key.dataType()));
  }

  /** The stream as Python joins it. */
  LogicalPlan plan() {
    return plan;
  }

  /** The names of the stream's keys by the table's columns that they equal. */
  Map<String, String> keys() {
    return keys;
  }

  /** The name of a column of the stream. */
  String name(Attribute column) {
    return names.get(column.exprId());
  }
}

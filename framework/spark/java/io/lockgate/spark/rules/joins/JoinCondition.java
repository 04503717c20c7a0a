package io.lockgate.spark.rules.joins;

import io.lockgate.spark.bridge.Bridge;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * The parts of the condition after ON: equalities of the stream with columns of the table, and
 * conditions on the stream, on the table, and on both.
 */
final class JoinCondition {
  final List<Key> keys = new ArrayList<>();
  final List<Expression> onStream = new ArrayList<>();
  final List<Expression> onTable = new ArrayList<>();
  final List<Expression> onBoth = new ArrayList<>();

  private final AttributeSet stream;
  private final AttributeSet table;

  /** A value of the stream, and the column of the table that it equals. */
  record Key(Expression stream, Attribute column) {}

  /** {@code condition} is null where a join has none. */
  JoinCondition(Expression condition, LogicalPlan stream, LogicalPlan table) {
    this.stream = stream.outputSet();
    this.table = table.outputSet();
    if (condition != null) {
      part(condition);
    }
  }

  private void part(Expression condition) {
    if (condition instanceof And and) {
      part(and.left());
      part(and.right());
    } else if (!isKey(condition)) {
      listOf(condition).add(checked(condition));
    }
  }

  private boolean isKey(Expression condition) {
    return condition instanceof EqualTo equal
        && (isKey(equal.left(), equal.right()) || isKey(equal.right(), equal.left()));
  }

  private boolean isKey(Expression ofStream, Expression ofTable) {
    Expression column = stripped(ofTable);
    if (!(column instanceof Attribute found)
        || !table.contains(found)
        || ofStream.references().isEmpty()
        || !ofStream.references().subsetOf(stream)) {
      return false;
    }
    // A column that equals two values of the stream is found by one of them, if they are equal.
    if (keys.stream().anyMatch(key -> key.column.exprId().equals(found.exprId()))) {
      return false;
    }
    checked(ofStream);
    keys.add(new Key(stripped(ofStream), found));
    return true;
  }

  /** A value without the cast that Spark has put around it to compare it. */
  private static Expression stripped(Expression value) {
    return value instanceof Cast cast && cast.getTagValue(Cast.USER_SPECIFIED_CAST()).isEmpty()
        ? cast.child()
        : value;
  }

  private List<Expression> listOf(Expression condition) {
    AttributeSet used = condition.references();
    if (used.subsetOf(stream)) {
      return onStream;
    }
    return used.subsetOf(table) ? onTable : onBoth;
  }

  private static Expression checked(Expression condition) {
    if (!condition.deterministic()) {
      throw Bridge.failure(
          "the condition of a lookup join has the same value whenever it is asked: compute what is"
              + " random before the join, as a column of the stream");
    }
    if (condition.exists(SubqueryExpression.class::isInstance)) {
      throw Bridge.failure(
          "the condition of a lookup join has no subquery: write it into WHERE, or join before");
    }
    return condition;
  }
}

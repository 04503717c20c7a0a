package io.lockgate.spark.lineage;

import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Rows of several groupings: which one a row is of, {@code grouping} asks of the keys left out. */
final class Groupings {
  private static final String NUMBER = "spark_grouping_id";

  private Groupings() {}

  /** Adds what the number of the grouping depends on, if the node has one. */
  static void number(Expand expand, Scope out) {
    List<Attribute> columns = CollectionConverters.asJava(expand.output());
    for (Attribute column : columns) {
      if (column.name().equals(NUMBER)) {
        out.columns.put(column.exprId().id(), keys(expand, columns, out));
      }
    }
  }

  private static Dependencies keys(Expand expand, List<Attribute> columns, Scope out) {
    Dependencies keys = new Dependencies();
    for (int i = 0; i < columns.size(); i++) {
      if (isLeftOut(expand, i)) {
        keys.add(out.of(columns.get(i).exprId().id()).through(Dependencies.GROUP_BY));
      }
    }
    return keys;
  }

  private static boolean isLeftOut(Expand expand, int column) {
    for (Seq<Expression> row : CollectionConverters.asJava(expand.projections())) {
      if (row.apply(column) instanceof Literal literal && literal.value() == null) {
        return true;
      }
    }
    return false;
  }
}

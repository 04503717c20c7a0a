package io.lockgate.spark.rules.joins;

import io.lockgate.spark.lineage.PlanLineage;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import scala.jdk.javaapi.CollectionConverters;

/** The columns of a planned join under the names, and the ids, that the statement knows. */
final class JoinedColumns {
  private final LogicalPlan made;
  private final Map<String, String> names;
  private final StreamKeys stream;
  private final Map<String, Attribute> byName = new HashMap<>();

  /** {@code names} are those of the table's columns in the plan. */
  JoinedColumns(LogicalPlan made, Map<String, String> names, StreamKeys stream) {
    this.made = made;
    this.names = names;
    this.stream = stream;
    CollectionConverters.asJava(made.output()).forEach(each -> byName.put(each.name(), each));
  }

  /**
   * The join as the statement sees it, under the conditions that are asked of its rows: one that
   * fails takes the row away, or, if all rows of the stream are kept, what was found for it.
   */
  LogicalPlan named(
      LogicalPlan left,
      List<Attribute> wanted,
      LookupSide side,
      List<Expression> conditions,
      boolean keepsAll) {
    Map<Object, Expression> own = new HashMap<>();
    List<NamedExpression> columns = new ArrayList<>();
    for (Attribute column : CollectionConverters.asJava(left.output())) {
      Attribute found = byName.get(stream.name(column));
      own.put(column.exprId(), found);
      columns.add(Columns.again(column, found));
    }
    CollectionConverters.asJava(side.table().output())
        .forEach(column -> own.put(column.exprId(), ofTable(column)));
    Expression met =
        conditions.stream()
            .map(each -> Columns.replaced(each, own::get))
            .reduce(And::new)
            .orElse(null);
    for (Attribute column : side.output()) {
      if (!wanted.contains(column)) {
        // Inner queries name columns that nothing above them uses.
        columns.add(
            Columns.inPlaceOf(column, Literal.create(null, column.dataType()), Metadata.empty()));
        continue;
      }
      Attribute found = ofTable(side.column(column));
      columns.add(
          met == null || !keepsAll
              ? Columns.inPlaceOf(column, found, null)
              : Columns.inPlaceOf(column, masked(met, found), described(found)));
    }
    LogicalPlan rows = met == null || keepsAll ? made : new Filter(met, made);
    return Columns.project(columns, rows);
  }

  private Attribute ofTable(Attribute column) {
    return byName.get(names.get(column.name()));
  }

  private static Expression masked(Expression met, Attribute found) {
    return new If(met, found, Literal.create(null, found.dataType()));
  }

  /** The metadata of a column, but for its origin, which its expression tells. */
  private static Metadata described(Attribute column) {
    return new MetadataBuilder()
        .withMetadata(column.metadata())
        .remove(PlanLineage.DECLARED)
        .build();
  }
}

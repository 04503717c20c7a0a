package io.lockgate.spark.rules.joins;

import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.catalog.LockgateTable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.jdk.javaapi.CollectionConverters;

/** The side of a join that is looked up in: a table, under other names of it and of its columns. */
final class LookupSide {
  private final LogicalPlan side;
  private final Map<ExprId, Attribute> columns = new HashMap<>();
  private String alias;
  private LookupTable table;

  private LookupSide(LogicalPlan side) {
    this.side = side;
  }

  /** The side that a plan is; null for any other plan. */
  static LookupSide of(LogicalPlan plan) {
    LookupSide found = new LookupSide(plan);
    return found.descend(plan) ? found : null;
  }

  private boolean descend(LogicalPlan plan) {
    if (plan instanceof LookupTable found) {
      table = found;
      CollectionConverters.asJava(found.output())
          .forEach(column -> columns.put(column.exprId(), column));
      return true;
    } else if (plan instanceof SubqueryAlias named) {
      alias = alias == null ? named.alias() : alias;
      return descend(named.child());
    }
    return plan instanceof Project project
        && renames(project)
        && descend(project.child())
        && renamed(project);
  }

  private static boolean renames(Project project) {
    return CollectionConverters.asJava(project.projectList()).stream()
        .allMatch(each -> each instanceof Attribute || isOther(each));
  }

  private static boolean isOther(NamedExpression column) {
    return column instanceof Alias alias && alias.child() instanceof Attribute;
  }

  private boolean renamed(Project project) {
    for (NamedExpression each : CollectionConverters.asJava(project.projectList())) {
      if (each instanceof Alias other) {
        columns.put(other.exprId(), columns.get(((Attribute) other.child()).exprId()));
      }
    }
    return true;
  }

  LookupTable table() {
    return table;
  }

  /** The name of the table in the statement. */
  String alias() {
    return alias == null ? String.join(".", name()) : alias;
  }

  /** The columns that the join gives. */
  List<Attribute> output() {
    return CollectionConverters.asJava(side.output());
  }

  /** The column of the table that a column of this side is. */
  Attribute column(Attribute ofSide) {
    return columns.get(ofSide.exprId());
  }

  /** An expression on columns of the table. */
  Expression onTable(Expression expression) {
    return Columns.replaced(expression, columns::get);
  }

  /** Tells whether this is what Spark puts above a table with columns of CHAR. */
  private static boolean pads(Project project) {
    return CollectionConverters.asJava(project.projectList()).stream()
        .allMatch(each -> each instanceof Attribute || isPadded(each));
  }

  private static boolean isPadded(NamedExpression column) {
    if (!(column instanceof Alias alias)) {
      return false;
    }
    List<Attribute> read = CollectionConverters.asJava(alias.child().references().toSeq());
    return read.size() == 1 && read.get(0).name().equals(column.name());
  }

  /** Catalog, databases and name of the table; an error for what is no table of Lockgate. */
  List<String> name() {
    LogicalPlan plan = table.child();
    while (plan instanceof SubqueryAlias || plan instanceof Project project && pads(project)) {
      plan = plan.children().head();
    }
    if (plan instanceof DataSourceV2Relation relation
        && relation.table() instanceof LockgateTable ours
        && ours.view() == null
        && relation.catalog().isDefined()) {
      List<String> name = new ArrayList<>(List.of(relation.catalog().get().name()));
      name.addAll(List.of(relation.identifier().get().namespace()));
      name.add(relation.identifier().get().name());
      return name;
    }
    throw Bridge.failure(
        "FOR SYSTEM_TIME AS OF looks up in tables of Lockgate only, and "
            + (alias == null ? "this" : alias)
            + " is none (a view, a system table, a stream or a table of another catalog): join"
            + " without the clause, or copy the rows into a table of Lockgate");
  }
}

package io.lockgate.spark.rules.sql;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.RelationTimeTravel;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.UnresolvedProcedure;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTable;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.Call;
import org.apache.spark.sql.catalyst.plans.logical.ColumnDefinition;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.ParsedStatement;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedTableSpec;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Describes a statement from its parsed, unresolved plan. */
public final class SqlInspector {
  private final Set<Object> seen = new HashSet<>();
  private final Set<String> commonTables = new HashSet<>();
  private final ObjectNode found = Bridge.object();
  private final ArrayNode tables = found.putArray("tables");
  private final ArrayNode columns = found.putArray("columns");
  private final ObjectNode options = found.putObject("options");

  private final boolean childrenFirst;

  private SqlInspector(boolean childrenFirst) {
    this.childrenFirst = childrenFirst;
  }

  /** {"node","query","tables","columns","target","options"} as JSON. */
  public static String inspect(SparkSession spark, String sql) throws Exception {
    LogicalPlan plan = spark.sessionState().sqlParser().parsePlan(sql);
    // Tables in the order of FROM, columns in the order of SELECT: a plan nests the two the other
    // way round.
    ObjectNode found = new SqlInspector(false).all(plan);
    found.set("tables", new SqlInspector(true).all(plan).get("tables"));
    return found.toString();
  }

  private ObjectNode all(LogicalPlan plan) {
    LogicalPlan statement = plan;
    while (statement instanceof UnresolvedWith with) {
      statement = with.child();
    }
    boolean overwrites = statement instanceof InsertIntoStatement insert && insert.overwrite();
    found.put("node", overwrites ? "InsertOverwrite" : statement.getClass().getSimpleName());
    found.put("query", !(statement instanceof Command || statement instanceof ParsedStatement));
    found.putNull("target");
    visit(plan);
    return found;
  }

  private void visit(TreeNode<?> node) {
    if (node instanceof LogicalPlan plan) {
      visitPlan(plan);
    } else if (node instanceof Expression expression) {
      visitExpression(expression);
    }
    children(node);
  }

  private void children(TreeNode<?> node) {
    if (!childrenFirst) {
      expressions(node);
      inner(node);
    }
    for (Object child : CollectionConverters.asJava(node.children())) {
      visit((TreeNode<?>) child);
    }
    if (childrenFirst) {
      inner(node);
      expressions(node);
    }
  }

  private void inner(TreeNode<?> node) {
    CollectionConverters.asJava(node.innerChildren()).forEach(this::visitOnce);
  }

  private void expressions(TreeNode<?> node) {
    if (node instanceof LogicalPlan plan) {
      CollectionConverters.asJava(plan.expressions()).forEach(this::visitOnce);
    }
  }

  /** Inner children and expressions overlap in some nodes. */
  private void visitOnce(TreeNode<?> node) {
    if (seen.add(new Identity(node))) {
      visit(node);
    }
  }

  private void visitPlan(LogicalPlan plan) {
    if (plan instanceof UnresolvedWith with) {
      CollectionConverters.asJava(with.innerChildren()).forEach(this::addCommonTable);
    } else if (plan instanceof InsertIntoStatement insert) {
      target(insert.table());
      CollectionConverters.asJava(insert.userSpecifiedCols()).forEach(columns::add);
    } else if (plan instanceof DeleteFromTable delete) {
      target(delete.table());
    } else if (plan instanceof UpdateTable update) {
      target(update.table());
    } else if (plan instanceof MergeIntoTable merge) {
      target(merge.targetTable());
    } else if (plan instanceof UnresolvedRelation relation) {
      relation(relation);
    } else if (plan instanceof RelationTimeTravel travel) {
      travel.version().foreach(version -> options.put("VERSION AS OF", version));
      travel.timestamp().foreach(timestamp -> options.put("TIMESTAMP AS OF", text(timestamp)));
      visit(travel.relation());
    } else if (plan instanceof UnresolvedIdentifier named) {
      target(named.nameParts());
    } else if (plan instanceof UnresolvedProcedure named) {
      target(named.nameParts());
    } else if (plan instanceof UnresolvedTable named) {
      target(named.multipartIdentifier());
    } else if (plan instanceof UnresolvedTableOrView named) {
      target(named.multipartIdentifier());
    } else if (plan instanceof UnresolvedNamespace named) {
      target(named.multipartIdentifier());
    } else if (plan instanceof Call call) {
      arguments(call);
    }
  }

  private void addCommonTable(TreeNode<?> node) {
    if (node instanceof SubqueryAlias alias) {
      commonTables.add(alias.alias().toLowerCase(java.util.Locale.ROOT));
    }
  }

  private void visitExpression(Expression expression) {
    if (expression instanceof UnresolvedAttribute attribute) {
      columns.add(dotted(attribute.nameParts()));
    } else if (expression instanceof ColumnDefinition definition) {
      columns.add(definition.name());
    } else if (expression instanceof UnresolvedTableSpec spec) {
      CollectionConverters.asJava(spec.properties()).forEach(options::put);
    } else if (expression instanceof PlanExpression<?> subquery
        && subquery.plan() instanceof LogicalPlan plan) {
      visitOnce(plan);
    } else if (expression.getClass().getSimpleName().startsWith("UnresolvedStar")) {
      columns.add("*");
    }
  }

  private void relation(UnresolvedRelation relation) {
    readOptions(relation);
    String name = dotted(relation.multipartIdentifier());
    if (seen.contains(new Identity(relation)) && name.equals(found.get("target").asText())) {
      return; // the table that is written
    }
    if (!commonTables.contains(name.toLowerCase(java.util.Locale.ROOT))) {
      tables.add(name);
    }
  }

  private void readOptions(UnresolvedRelation relation) {
    relation
        .options()
        .asCaseSensitiveMap()
        .forEach(
            (key, value) -> {
              if (!key.startsWith(
                  "__")) { // Spark's own notes, such as the privileges a write needs
                options.put(key, value);
              }
            });
  }

  private void arguments(Call call) {
    int position = 0;
    for (Expression argument : CollectionConverters.asJava(call.args())) {
      position++;
      if (argument instanceof NamedArgumentExpression named) {
        options.put(named.key(), text(named.value()));
      } else {
        options.put(Integer.toString(position), text(argument));
      }
    }
  }

  private static String text(Expression value) {
    return value.foldable() && value.resolved() ? String.valueOf(value.eval(null)) : value.sql();
  }

  private void target(LogicalPlan table) {
    LogicalPlan inner = table;
    while (inner instanceof SubqueryAlias alias) {
      inner = alias.child();
    }
    if (inner instanceof UnresolvedRelation relation) {
      seen.add(new Identity(relation));
      target(relation.multipartIdentifier());
      readOptions(relation);
    }
  }

  private void target(Seq<String> name) {
    if (found.get("target").isNull()) {
      found.put("target", dotted(name));
    }
  }

  private static String dotted(Seq<String> parts) {
    return String.join(".", CollectionConverters.asJava(parts));
  }

  /** A node by itself, not by what it equals. */
  private record Identity(Object node) {
    @Override
    public boolean equals(Object other) {
      return other instanceof Identity identity && identity.node == node;
    }

    @Override
    public int hashCode() {
      return System.identityHashCode(node);
    }
  }
}

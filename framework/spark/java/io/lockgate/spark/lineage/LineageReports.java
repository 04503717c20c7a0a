package io.lockgate.spark.lineage;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.jdk.javaapi.CollectionConverters;

/** Reports of statements to Python: edges by numbers of inputs, as in its records. */
final class LineageReports {
  /** Columns that Spark or the connector adds to rows on their way into a table. */
  private static final Set<String> ADDED = Set.of("__row_operation", "_FILE_PATH", "_ROW_POS");

  private LineageReports() {}

  /** The lineage of a statement; {@code origins} are plans that rows in it were computed by. */
  static ObjectNode of(Statement statement, List<LogicalPlan> origins) {
    ObjectNode out = line(statement.kind());
    out.set("target", statement.target());
    if (statement.loaded() != null) {
      return loaded(statement, out);
    }
    if (statement.query() == null) {
      statement.columns().forEach(list(out, "columns")::add);
      return out;
    }
    try {
      return walked(statement, origins, out);
    } catch (PlanLineage.CutException tooLarge) {
      Sources sources = new Sources();
      leaves(statement.query(), sources);
      sources.writeTo(list(out, "inputs"));
      statement.columns().forEach(name -> list(out, "columns").add(Sources.quoted(name)));
      return out.put("cut", true);
    }
  }

  private static ObjectNode loaded(Statement statement, ObjectNode out) {
    list(out, "inputs").add(statement.loaded());
    for (String name : statement.columns()) {
      String column = Sources.quoted(name);
      list(out, "columns").add(column);
      list(out, "edges").addArray().add(column).add(0).add(column).add(Dependencies.IDENTITY);
    }
    return out;
  }

  /** The line of a statement that could not be analysed. */
  static ObjectNode failed() {
    return line("FAILED");
  }

  /** A line with all that its message declares, but for the run. */
  private static ObjectNode line(String kind) {
    ObjectNode out = Bridge.object().put("kind", kind).putNull("target").put("cut", false);
    List.of("inputs", "columns", "edges", "rows", "views", "opaque").forEach(out::putArray);
    return out;
  }

  private static ArrayNode list(ObjectNode line, String name) {
    return (ArrayNode) line.get(name);
  }

  private static void leaves(LogicalPlan plan, Sources sources) {
    if (plan.children().isEmpty()) {
      Datasets.all(plan).forEach(sources::dataset);
    }
    CollectionConverters.asJava(plan.children()).forEach(child -> leaves(child, sources));
    CollectionConverters.asJava(plan.subqueries()).forEach(inner -> leaves(inner, sources));
  }

  private static ObjectNode walked(Statement statement, List<LogicalPlan> origins, ObjectNode out) {
    PlanLineage walk = new PlanLineage();
    origins.forEach(walk::explain);
    Scope scope = walk.walk(statement.query(), Map.of());
    ArrayNode edges = list(out, "edges");
    ArrayNode columns = list(out, "columns");
    for (int i = 0; i < Math.min(statement.columns().size(), scope.order.size()); i++) {
      String name = statement.columns().get(i);
      if (!isAdded(name)) {
        String column = Sources.quoted(name);
        columns.add(column);
        write(edges, column, scope.at(i), walk.sources());
      }
    }
    write(list(out, "rows"), null, scope.rows, walk.sources());
    walk.sources().writeTo(list(out, "inputs"));
    walk.views().forEach(list(out, "views")::add);
    walk.opaque().forEach(list(out, "opaque")::add);
    return out;
  }

  private static boolean isAdded(String column) {
    return ADDED.contains(column) || column.startsWith("__original_row_id_");
  }

  private static void write(ArrayNode out, String target, Dependencies from, Sources sources) {
    from.kinds()
        .forEach(
            (number, kinds) -> {
              Sources.Column source = sources.column(number);
              if (source.name().startsWith("__lockgate_") || isAdded(source.name())) {
                return;
              }
              ArrayNode edge = out.addArray();
              if (target != null) {
                edge.add(target);
              }
              edge.add(source.dataset()).add(source.name()).add(kinds);
            });
  }
}

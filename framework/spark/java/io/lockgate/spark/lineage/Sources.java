package io.lockgate.spark.lineage;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.Metadata;
import scala.jdk.javaapi.CollectionConverters;

/** The datasets that a statement reads, and their columns, by numbers. */
public final class Sources {
  record Column(int dataset, String name) {}

  /** A column that a program declares as a source, and the program's own name of its dataset. */
  public record Declared(ObjectNode dataset, String column) {}

  /** The columns of a query, and for each the declared ones whose values it shows. */
  public record Declarations(List<String> names, List<List<Declared>> sources) {}

  private final Map<ObjectNode, Integer> datasets = new LinkedHashMap<>();
  private final Map<Column, Integer> numbers = new HashMap<>();
  private final List<Column> columns = new ArrayList<>();

  /** Declared columns that are encrypted where they are read. */
  private final Set<Integer> encrypted = new HashSet<>();

  /**
   * Declarations of programs on the columns that the statements of an analysed plan write. Columns
   * that are encrypted where they are read are left out: their marks say more.
   */
  public static List<Declarations> declared(LogicalPlan analysed) {
    List<Declarations> found = new ArrayList<>();
    for (Statement each : Statement.all(analysed)) {
      if (each.query() != null && isDeclared(each.query())) {
        found.add(declarations(each.query()));
      }
    }
    return found;
  }

  private static boolean isDeclared(LogicalPlan plan) {
    return CollectionConverters.asJava(plan.expressions()).stream().anyMatch(Sources::isDeclared)
        || CollectionConverters.asJava(plan.children()).stream().anyMatch(Sources::isDeclared)
        || CollectionConverters.asJava(plan.subqueries()).stream().anyMatch(Sources::isDeclared);
  }

  private static boolean isDeclared(Expression expression) {
    return expression instanceof NamedExpression named
            && expression.resolved()
            && named.metadata().contains(PlanLineage.DECLARED)
        || CollectionConverters.asJava(expression.children()).stream()
            .anyMatch(Sources::isDeclared);
  }

  private static Declarations declarations(LogicalPlan query) {
    PlanLineage walk = PlanLineage.unbounded();
    Scope scope = walk.walk(query, Map.of());
    List<List<Declared>> columns = new ArrayList<>();
    for (int i = 0; i < scope.order.size(); i++) {
      columns.add(walk.sources().declared(scope.at(i)));
    }
    List<String> names =
        CollectionConverters.asJava(query.output()).stream().map(each -> each.name()).toList();
    return new Declarations(names, columns);
  }

  private List<Declared> declared(Dependencies from) {
    List<ObjectNode> all = new ArrayList<>(datasets.keySet());
    List<Declared> found = new ArrayList<>();
    from.kinds()
        .forEach(
            (number, kinds) -> {
              Column column = column(number);
              ObjectNode dataset = all.get(column.dataset);
              boolean isNamed = dataset.get("type").asText().equals("named");
              if (isNamed && Dependencies.isPlain(kinds) && !encrypted.contains(number)) {
                found.add(new Declared(dataset, column.name));
              }
            });
    return found;
  }

  /** The columns that metadata declare; null if nothing can be read there. */
  Dependencies declared(Metadata metadata) {
    List<Declared> found = declarations(metadata);
    if (found == null) {
      return null;
    }
    Dependencies out = new Dependencies();
    for (Declared each : found) {
      int column = column(dataset(each.dataset), each.column);
      out.add(column, Dependencies.IDENTITY);
      if (metadata.contains(PlanLineage.ENCRYPTED)) {
        encrypted.add(column);
      }
    }
    return out;
  }

  /**
   * Declarations in metadata; null if they cannot be read: files carry metadata of those who made
   * them.
   */
  public static List<Declared> declarations(Metadata metadata) {
    try {
      return parsed(metadata.getString(PlanLineage.DECLARED));
    } catch (ClassCastException noText) {
      return null;
    }
  }

  /** Declarations in a text, a list of datasets and paths of columns; null for any other text. */
  public static List<Declared> parsed(String text) {
    List<Declared> found = new ArrayList<>();
    try {
      JsonNode all = Bridge.JSON.readTree(text);
      for (JsonNode each : all) {
        boolean isPair = all.isArray() && each.isArray() && each.size() == 2;
        if (!isPair || !each.get(0).isTextual() || each.get(1).isEmpty()) {
          return null;
        }
        JsonNode path = each.get(1);
        found.add(new Declared(Datasets.named(each.get(0).asText()), text(path)));
      }
    } catch (JsonProcessingException e) {
      return null;
    }
    return found;
  }

  int dataset(ObjectNode dataset) {
    return datasets.computeIfAbsent(dataset, key -> datasets.size());
  }

  int column(int dataset, String name) {
    return numbers.computeIfAbsent(
        new Column(dataset, name),
        key -> {
          columns.add(key);
          return columns.size() - 1;
        });
  }

  Column column(int number) {
    return columns.get(number);
  }

  /** The number of a member of a struct. */
  int member(int number, String name) {
    Column of = columns.get(number);
    return column(of.dataset, of.name + "." + quoted(name));
  }

  /**
   * One part of a column as records name it: in backquotes if a dot could join two parts, as
   * Python's {@code column_text} does it.
   */
  public static String quoted(String part) {
    boolean isPlain = part.indexOf('.') < 0 && part.indexOf('`') < 0;
    return isPlain && !part.isEmpty() && !part.equals("*")
        ? part
        : "`" + part.replace("`", "``") + "`";
  }

  /** A column as records name it: its name, or a struct and its members. */
  public static String text(List<String> path) {
    return path.stream().map(Sources::quoted).collect(Collectors.joining("."));
  }

  /** The path of a column in a declaration; empty if that is something else. */
  public static String text(JsonNode path) {
    List<String> parts = new ArrayList<>();
    path.forEach(each -> parts.add(each.asText()));
    return text(parts);
  }

  void writeTo(ArrayNode out) {
    datasets.keySet().forEach(out::add);
  }
}

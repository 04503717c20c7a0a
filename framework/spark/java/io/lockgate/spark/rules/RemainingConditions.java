package io.lockgate.spark.rules;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Predicates;
import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.files.WordMatch;
import io.lockgate.spark.scan.LockgateScan;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.ApplyFunctionExpression;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Like;
import org.apache.spark.sql.catalyst.expressions.LikeAll;
import org.apache.spark.sql.catalyst.expressions.LikeAny;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Lower;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.RLike;
import org.apache.spark.sql.catalyst.optimizer.InjectRuntimeFilter$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Sends the scan those conditions that Spark offers to no source, or offers and keeps: LIKE with
 * several wildcards, RLIKE, functions inside AND and OR. Python finds out what they require of
 * columns, and skips files by that. The conditions stay where they are.
 */
final class RemainingConditions extends Rule<LogicalPlan> {
  static final RemainingConditions RULE = new RemainingConditions();

  private static final String UNKNOWN = "?";
  private static final char BACKSLASH = '\\';

  private RemainingConditions() {}

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof Filter filter
        && filter.child() instanceof DataSourceV2ScanRelation relation
        && relation.scan() instanceof LockgateScan scan) {
      scan.requireConditions(remaining(filter.condition(), scan));
    }
    CollectionConverters.asJava(plan.children()).forEach(this::apply);
    CollectionConverters.asJava(plan.subqueries()).forEach(this::apply);
    return plan;
  }

  private static List<JsonNode> remaining(Expression condition, LockgateScan scan) {
    Set<String> accepted =
        Arrays.stream(scan.accepted()).map(Predicate::toString).collect(Collectors.toSet());
    List<JsonNode> found = new ArrayList<>();
    for (Expression part :
        CollectionConverters.asJava(
            InjectRuntimeFilter$.MODULE$.splitConjunctivePredicates(condition))) {
      Predicate translated = translated(part);
      if (translated == null || !accepted.contains(translated.toString())) {
        ObjectNode node = node(part);
        if (!isUnknown(node)) {
          found.add(node);
        }
      }
    }
    return found;
  }

  private static Predicate translated(Expression condition) {
    if (!condition.dataType().equals(DataTypes.BooleanType) || Untranslatable.fails(condition)) {
      return null;
    }
    var found = DataSourceV2Strategy$.MODULE$.translateFilterV2(condition);
    return found.isDefined() ? found.get() : null;
  }

  private static ObjectNode node(Expression condition) {
    if (condition instanceof And and) {
      return operator("AND", List.of(node(and.left()), node(and.right())));
    } else if (condition instanceof Or or) {
      return operator("OR", List.of(node(or.left()), node(or.right())));
    } else if (condition instanceof Not not) {
      return operator("NOT", List.of(node(not.child())));
    } else if (condition instanceof Like like) {
      return text("LIKE", like.left(), like(like));
    } else if (condition instanceof LikeAll all) {
      return likes("AND", all.child(), CollectionConverters.asJava(all.patterns()));
    } else if (condition instanceof LikeAny any) {
      return likes("OR", any.child(), CollectionConverters.asJava(any.patterns()));
    } else if (condition instanceof RLike regex) {
      return text("RLIKE", regex.left(), string(regex.right()));
    } else if (condition instanceof ApplyFunctionExpression call
        && call.function() instanceof WordMatch.Bound) {
      return text("MATCH", call.children().apply(0), string(call.children().apply(1)));
    }
    Predicate translated = translated(condition);
    return translated != null && Predicates.toJson(translated) instanceof ObjectNode found
        ? found
        : operator(UNKNOWN, List.of());
  }

  private static ObjectNode likes(String join, Expression value, List<UTF8String> patterns) {
    return operator(
        join,
        patterns.stream()
            .map(each -> text("LIKE", value, each == null ? null : each.toString()))
            .toList());
  }

  /** A comparison of a column of texts, or of it in lower case, with a text. */
  private static ObjectNode text(String operator, Expression value, String text) {
    boolean lower = value instanceof Lower;
    Expression column = lower ? ((Lower) value).child() : value;
    if (text == null
        || !(column instanceof AttributeReference attribute)
        || !attribute.dataType().equals(DataTypes.StringType)) {
      return operator(UNKNOWN, List.of());
    }
    ObjectNode path = Bridge.object();
    path.putArray("col").add(attribute.name());
    ObjectNode literal = Bridge.object().put("value", text);
    literal.set("type", Values.typeToJson(DataTypes.StringType));
    return operator(operator, List.of(lower ? operator("LOWER", List.of(path)) : path, literal));
  }

  /** The pattern of a LIKE with backslashes as escapes; null if it is none that is known by now. */
  private static String like(Like like) {
    String pattern = string(like.right());
    if (pattern == null || like.escapeChar() == BACKSLASH) {
      return pattern;
    }
    StringBuilder found = new StringBuilder();
    for (int at = 0; at < pattern.length(); at++) {
      char each = pattern.charAt(at);
      if (each == like.escapeChar() && at + 1 < pattern.length()) {
        each = pattern.charAt(++at);
        if (each == '%' || each == '_' || each == BACKSLASH) {
          found.append(BACKSLASH);
        }
      } else if (each == BACKSLASH) {
        found.append(BACKSLASH);
      }
      found.append(each);
    }
    return found.toString();
  }

  /** A text that is known by now, else null. */
  private static String string(Expression expression) {
    return expression instanceof Literal literal
            && literal.value() != null
            && literal.dataType().equals(DataTypes.StringType)
        ? literal.value().toString()
        : null;
  }

  private static ObjectNode operator(String name, List<ObjectNode> arguments) {
    ObjectNode node = Bridge.object().put("op", name);
    ArrayNode list = node.putArray("args");
    arguments.forEach(list::add);
    return node;
  }

  private static boolean isUnknown(ObjectNode node) {
    return node.has("op") && node.get("op").asText().equals(UNKNOWN); // a literal has none
  }
}

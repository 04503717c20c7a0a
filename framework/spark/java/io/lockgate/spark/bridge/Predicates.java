package io.lockgate.spark.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.connector.expressions.Cast;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.DataType;

/** Spark's predicates and aggregates as JSON: {"op","args"}, {"col":[..]}, {"value","type"}. */
public final class Predicates {
  private Predicates() {}

  public static List<JsonNode> toJson(Expression[] expressions) {
    return Arrays.stream(expressions).map(Predicates::toJson).toList();
  }

  public static JsonNode toJson(Expression expression) {
    ObjectNode out = Bridge.object();
    if (expression instanceof NamedReference reference) {
      out.set("col", Bridge.JSON.valueToTree(reference.fieldNames()));
    } else if (expression instanceof GeneralScalarExpression scalar) {
      // Before literals: ALWAYS_TRUE is a predicate that is a literal too.
      out.put("op", scalar.name());
      addArguments(scalar.children(), out.putArray("args"));
    } else if (expression instanceof Literal<?> literal) {
      // A StructType.json type: "integer", "decimal(5,2)", ...; a JSON document, hence read as one.
      setLiteral(literal, Values.typeToJson(literal.dataType()), out);
    } else if (expression instanceof Cast cast) {
      out.put("op", "CAST");
      out.set("type", Values.typeToJson(cast.dataType()));
      out.putArray("args").add(toJson(cast.expression()));
    } else if (expression instanceof CountStar) {
      out.put("op", "COUNT").putArray("args");
    } else if (expression instanceof Count count && !count.isDistinct()) {
      out.put("op", "COUNT").putArray("args").add(toJson(count.column()));
    } else if (expression instanceof Min min) {
      out.put("op", "MIN").putArray("args").add(toJson(min.column()));
    } else if (expression instanceof Max max) {
      out.put("op", "MAX").putArray("args").add(toJson(max.column()));
    } else {
      out.put("op", "?").put("text", expression.toString());
    }
    return out;
  }

  /** The many literals of a list have one type, which is written once. */
  private static void addArguments(Expression[] children, ArrayNode arguments) {
    DataType type = null;
    JsonNode name = null;
    for (Expression child : children) {
      if (child instanceof Literal<?> literal && !(child instanceof GeneralScalarExpression)) {
        if (!literal.dataType().equals(type)) {
          type = literal.dataType();
          name = Values.typeToJson(type);
        }
        setLiteral(literal, name, arguments.addObject());
      } else {
        arguments.add(toJson(child));
      }
    }
  }

  private static void setLiteral(Literal<?> literal, JsonNode type, ObjectNode out) {
    out.set("value", Values.toJson(literal.value(), literal.dataType()));
    out.set("type", type);
  }

  /** The predicates at the given indices. */
  public static Predicate[] pick(Predicate[] predicates, List<Long> indices) {
    return indices.stream()
        .map(index -> predicates[Math.toIntExact(index)])
        .toArray(Predicate[]::new);
  }
}

package io.lockgate.spark.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
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

/** Spark's predicates and aggregates as JSON: {"op","args"}, {"col":[..]}, {"value","type"}. */
public final class Predicates {
  private Predicates() {}

  public static ArrayNode toJson(Expression[] expressions) {
    ArrayNode out = Bridge.JSON.createArrayNode();
    for (Expression expression : expressions) {
      out.add(toJson(expression));
    }
    return out;
  }

  public static JsonNode toJson(Expression expression) {
    ObjectNode out = Bridge.object();
    if (expression instanceof NamedReference reference) {
      out.set("col", Bridge.JSON.valueToTree(reference.fieldNames()));
    } else if (expression instanceof GeneralScalarExpression scalar) {
      // Before literals: ALWAYS_TRUE is a predicate that is a literal too.
      out.put("op", scalar.name());
      ArrayNode arguments = out.putArray("args");
      for (Expression child : scalar.children()) {
        arguments.add(toJson(child));
      }
    } else if (expression instanceof Literal<?> literal) {
      out.set("value", Values.toJson(literal.value(), literal.dataType()));
      // A StructType.json type: "integer", "decimal(5,2)", ...; a JSON document, hence read as one.
      out.set("type", Values.typeToJson(literal.dataType()));
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

  /** The predicates at the given indices. */
  public static Predicate[] pick(Predicate[] predicates, JsonNode indices) {
    List<Predicate> out = new ArrayList<>();
    for (JsonNode index : indices) {
      out.add(predicates[index.asInt()]);
    }
    return out.toArray(new Predicate[0]);
  }
}

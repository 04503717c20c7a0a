package io.lockgate.spark.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import scala.Option;

/** Runs the vectors of values in messages. */
public final class ValueTwins {
  private ValueTwins() {}

  /**
   * What becomes of the cases of a vector, which have a Spark type, values and refused values: for
   * each case the values read and written again, the values as Spark shows them in UTC, and the
   * refused values that were taken.
   */
  public static String values(String vector) throws IOException {
    ArrayNode found = Bridge.JSON.createArrayNode();
    for (JsonNode each : Bridge.JSON.readTree(vector)) {
      DataType type = DataType.fromJson(each.get("spark").toString());
      ObjectNode out = found.addObject();
      ArrayNode written = out.putArray("values");
      ArrayNode texts = out.putArray("texts");
      for (JsonNode value : each.get("values")) {
        Object read = Values.fromJson(value, type);
        written.add(Values.toJson(read, type));
        if (each.has("texts")) {
          texts.add(text(read, type));
        }
      }
      ArrayNode taken = out.putArray("taken");
      for (JsonNode value : each.get("refused")) {
        if (!refuses(value, type)) {
          taken.add(value);
        }
      }
    }
    return found.toString();
  }

  private static String text(Object value, DataType type) {
    Cast cast =
        new Cast(
            new Literal(value, type),
            DataTypes.StringType,
            Option.apply("UTC"),
            org.apache.spark.sql.catalyst.expressions.EvalMode$.MODULE$.ANSI());
    Object text = cast.eval(null);
    return text == null ? null : text.toString();
  }

  private static boolean refuses(JsonNode value, DataType type) {
    try {
      Values.fromJson(value, type);
      return false;
    } catch (Exception refused) {
      // AnalysisException, which is checked, though no method declares it.
      if (refused.getMessage() == null
          || !refused.getMessage().contains("an invalid value of type")) {
        throw new IllegalStateException("a fault of the codec, no refusal", refused);
      }
      return true;
    }
  }
}

package io.lockgate.spark.merge;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;

/**
 * How the rows of one key become one row; the plan is written in Python, this is how the connector reads it.
 *
 * <p>{@code descending} are those columns of {@code sequence} of which the smaller value is newer.
 */
public record MergePlan(List<String> key, List<String> sequence, List<String> descending, String kind) implements Serializable {
  public static final String SEQUENCE_NUMBER = "_SEQUENCE_NUMBER";

  public static MergePlan of(JsonNode plan) {
    String engine = plan.path("engine").asText();
    if (!engine.equals("deduplicate")) {
      throw new IllegalArgumentException("merge engine '" + engine + "' is not supported; the connector knows: deduplicate");
    }
    for (JsonNode column : plan.path("columns")) {
      if (!column.path("function").asText().equals("last")) {
        throw new IllegalArgumentException("column " + column.path("name").asText() + ": merge function '"
            + column.path("function").asText() + "' is not supported by engine deduplicate; it knows: last");
      }
    }
    return new MergePlan(names(plan.get("key")), names(plan.get("sequence")), names(plan.path("descending")),
        plan.get("kind").asText());
  }

  private static List<String> names(JsonNode array) {
    List<String> names = new ArrayList<>();
    array.forEach(name -> names.add(name.asText()));
    return names;
  }
}

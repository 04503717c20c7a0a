package io.lockgate.spark.enforcement.parts;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;

/** The parts of the connector that have registered themselves. */
public final class PartRegistry {
  // The threads of Spark's RPC do not see the classes of spark.jars, but this class does.
  private static final List<Part> ALL =
      ServiceLoader.load(Part.class, PartRegistry.class.getClassLoader()).stream()
          .map(ServiceLoader.Provider::get)
          .toList();

  private static final Map<String, Part.Answer> ANSWERS = answers();

  private PartRegistry() {}

  private static Map<String, Part.Answer> answers() {
    Map<String, Part.Answer> found = new HashMap<>();
    for (Part part : ALL) {
      part.answers()
          .forEach(
              (question, answer) -> {
                if (found.put(question, answer) != null) {
                  throw new IllegalStateException("two parts answer " + question);
                }
              });
    }
    return Map.copyOf(found);
  }

  public static List<Part> all() {
    return ALL;
  }

  /**
   * The answer to a question of executors; IllegalArgumentException for one that they may not ask.
   */
  static Part.Answer answer(String question) {
    Part.Answer answer = ANSWERS.get(question);
    if (answer == null) {
      throw new IllegalArgumentException("an executor may not ask for " + question);
    }
    return answer;
  }

  /** The function that a part offers to a session under a name, null if none does. */
  public static UnboundFunction function(SparkSession session, String name) {
    for (Part part : ALL) {
      UnboundFunction found = part.function(session, name);
      if (found != null) {
        return found;
      }
    }
    return null;
  }
}

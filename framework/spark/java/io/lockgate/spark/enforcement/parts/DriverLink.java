package io.lockgate.spark.enforcement.parts;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** An executor's way to the driver. */
public interface DriverLink {
  /** Asks one of the {@code ExecutorQuestions}; answers what the driver answered. */
  JsonNode ask(String question, ObjectNode fields) throws Exception;

  /** The driver's answer is an error, of which {@code kind} names the Python class. */
  final class RefusedException extends Exception {
    private final String kind;

    public RefusedException(String kind, String message) {
      super(message);
      this.kind = kind;
    }

    public String kind() {
      return kind;
    }
  }
}

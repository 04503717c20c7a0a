package io.lockgate.spark.enforcement.parts;

import com.fasterxml.jackson.databind.JsonNode;
import io.lockgate.spark.messages.Messages;
import io.lockgate.spark.messages.Operation;

/** An executor's way to the driver. */
public interface DriverLink {
  /** Asks one of the {@code ExecutorQuestions}; returns what the driver answered. */
  JsonNode ask(String question, JsonNode fields) throws Exception;

  /** Asks for an operation of Python, by the driver. */
  default <Q, A> A ask(Operation<Q, A> operation, Q request) throws Exception {
    return Messages.read(ask(operation.name(), Messages.tree(request)), operation);
  }

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

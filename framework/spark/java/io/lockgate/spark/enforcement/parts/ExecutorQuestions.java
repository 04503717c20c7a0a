package io.lockgate.spark.enforcement.parts;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Failure;
import io.lockgate.spark.messages.Messages;

/** The questions of executors to the driver, which {@link Part}s answer. */
public final class ExecutorQuestions {
  private static final int LONGEST = 4 << 20;

  private ExecutorQuestions() {}

  /**
   * Answers the bytes of a question with those of {@code {"ok": ...}} or {@code {"error": {"type":
   * ..., "message": ...}}}.
   */
  public static ObjectNode answer(byte[] message) {
    ObjectNode answer = Bridge.object();
    try {
      if (message.length > LONGEST) {
        throw new IllegalArgumentException(
            "a question of " + message.length + " bytes is more than an executor may ask");
      }
      Fields fields = Fields.of(Bridge.JSON.readTree(message));
      answer.set("ok", Messages.tree(PartRegistry.answer(fields.question()).to(fields)));
    } catch (Exception failure) {
      String type = failure instanceof Failure ours ? ours.pythonType() : null;
      answer
          .putObject("error")
          .put("type", type == null ? "BridgeError" : type)
          .put("message", String.valueOf(failure.getMessage()));
    }
    return answer;
  }
}

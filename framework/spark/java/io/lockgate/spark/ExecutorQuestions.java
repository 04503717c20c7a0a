package io.lockgate.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Failure;
import io.lockgate.spark.owner.Executors;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * The questions of an executor to the driver: for the local key of a file, to be unwrapped or made,
 * and what processes of lookups have to say. Code of users runs in executors, so each field is
 * checked here and put into a request of the driver's own making; nothing that an executor sent
 * goes on as it came.
 */
public final class ExecutorQuestions {
  /** Endpoint by which executors ask the driver's Python. */
  static final int LONGEST = 4 << 20;

  private static final Pattern SCOPE = Pattern.compile("keys-[0-9a-f]{32}(!strict)?");
  private static final Pattern EXECUTOR = Pattern.compile("[0-9A-Za-z_.-]{1,128}");
  private static final Pattern BASE64 = Pattern.compile("[0-9A-Za-z+/]{1,65536}={0,2}");
  private static final Pattern CIPHER = Pattern.compile("AES_CTR_(128|256)");
  private static final Pattern NAME = Pattern.compile("[^\\p{Cntrl}]{1,1024}");
  private static final Set<String> EVENTS =
      Set.of(
          "ask",
          "built",
          "emptied",
          "ended",
          "failed",
          "leading",
          "progress",
          "ready",
          "removed",
          "started",
          "waiting",
          "warning");

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
      answer.set("ok", answer(Bridge.JSON.readTree(message)));
    } catch (Exception failure) {
      String type = failure instanceof Failure ours ? ours.pythonType() : null;
      answer
          .putObject("error")
          .put("type", type == null ? "BridgeError" : type)
          .put("message", String.valueOf(failure.getMessage()));
    }
    return answer;
  }

  private static JsonNode answer(JsonNode message) {
    String question = text(message, "question", NAME);
    JsonNode fields = message.get("fields");
    if (fields == null || !fields.isObject()) {
      throw new IllegalArgumentException("a question of an executor has no fields");
    }
    return switch (question) {
      case "keys.unwrap" -> Bridge.ask(question, unwrap(fields));
      case "keys.create" -> Bridge.ask(question, create(fields));
      case "lookup.poll" -> Executors.poll(text(fields, "executor", EXECUTOR));
      case "lookup.said" -> Bridge.ask(question, said(fields));
      default -> throw new IllegalArgumentException("an executor may not ask for " + question);
    };
  }

  private static ObjectNode unwrap(JsonNode fields) {
    return key(fields)
        .put("version", version(fields))
        .put("algorithm", text(fields, "algorithm", CIPHER))
        .put("encrypted", text(fields, "encrypted", BASE64));
  }

  private static ObjectNode create(JsonNode fields) {
    ObjectNode request = key(fields).putNull("version").putNull("algorithm");
    JsonNode version = fields.get("version");
    return version != null && version.isNull()
        ? request
        : request
            .put("version", version(fields))
            .put("algorithm", text(fields, "algorithm", CIPHER));
  }

  private static ObjectNode key(JsonNode fields) {
    return Bridge.object()
        .put("scope", text(fields, "scope", SCOPE))
        .put("name", text(fields, "name", NAME));
  }

  private static ObjectNode said(JsonNode fields) {
    String executor = text(fields, "executor", EXECUTOR);
    JsonNode event = fields.get("event");
    if (event == null
        || !event.isObject()
        || !event.has("event")
        || !EVENTS.contains(event.get("event").asText())) {
      throw new IllegalArgumentException("a process of an executor said what means nothing");
    }
    Executors.heard(executor);
    ObjectNode request =
        Bridge.object().put("executor", executor).put("name", text(fields, "name", NAME));
    request.set("event", event);
    return request;
  }

  private static String text(JsonNode fields, String name, Pattern form) {
    JsonNode value = fields.get(name);
    if (value == null || !value.isTextual() || !form.matcher(value.textValue()).matches()) {
      throw new IllegalArgumentException("an executor's question has no proper '" + name + "'");
    }
    return value.textValue();
  }

  private static int version(JsonNode fields) {
    JsonNode value = fields.get("version");
    if (value == null || !value.isInt() || value.intValue() < 0) {
      throw new IllegalArgumentException("an executor's question has no proper 'version'");
    }
    return value.intValue();
  }
}

package io.lockgate.spark.enforcement.parts;

import com.fasterxml.jackson.databind.JsonNode;
import io.lockgate.spark.messages.Messages;
import java.io.IOException;
import java.util.regex.Pattern;

/**
 * The fields of an executor's question. Code of users runs in executors, so each field is checked
 * here, and nothing that an executor sent goes on as it came.
 */
public record Fields(String question, JsonNode json) {
  public static final Pattern NAME = Pattern.compile("[^\\p{Cntrl}]{1,1024}");

  /** Returns the fields of a question; IllegalArgumentException if it has none. */
  static Fields of(JsonNode question) {
    JsonNode name = question.get("question");
    JsonNode fields = question.get("fields");
    if (name == null || !name.isTextual() || !NAME.matcher(name.textValue()).matches()) {
      throw new IllegalArgumentException("an executor's question has no proper 'question'");
    }
    if (fields == null || !fields.isObject()) {
      throw new IllegalArgumentException("a question of an executor has no fields");
    }
    return new Fields(name.textValue(), fields);
  }

  /** Returns the request that the fields are; IllegalArgumentException if they are none. */
  public <T> T request(Class<T> type) {
    try {
      return Messages.read(json, type);
    } catch (IOException fault) {
      throw new IllegalArgumentException(
          "a process of an executor sent an invalid message: " + fault.getMessage());
    }
  }

  /** Checks that the whole text of a field has a form; IllegalArgumentException otherwise. */
  public static void check(String name, String value, Pattern form) {
    if (!form.matcher(value).matches()) {
      throw new IllegalArgumentException("an executor's question has no proper '" + name + "'");
    }
  }

  /** Checks that a field is the number of a version; IllegalArgumentException otherwise. */
  public static void checkVersion(String name, long value) {
    if (value < 0 || value > Integer.MAX_VALUE) {
      throw new IllegalArgumentException("an executor's question has no proper '" + name + "'");
    }
  }
}

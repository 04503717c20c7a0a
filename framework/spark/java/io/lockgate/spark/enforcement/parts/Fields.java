package io.lockgate.spark.enforcement.parts;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.regex.Pattern;

/**
 * The fields of an executor's question. Code of users runs in executors, so each field is checked
 * here, and nothing that an executor sent goes on as it came.
 */
public record Fields(JsonNode json) {
  public static final Pattern NAME = Pattern.compile("[^\\p{Cntrl}]{1,1024}");

  /** Returns the fields of a question; IllegalArgumentException if it has none. */
  static Fields of(JsonNode question) {
    JsonNode fields = question.get("fields");
    if (fields == null || !fields.isObject()) {
      throw new IllegalArgumentException("a question of an executor has no fields");
    }
    return new Fields(fields);
  }

  /** Returns a field whose whole text has a form; IllegalArgumentException for another one. */
  public String text(String name, Pattern form) {
    JsonNode value = json.get(name);
    if (value == null || !value.isTextual() || !form.matcher(value.textValue()).matches()) {
      throw improper(name);
    }
    return value.textValue();
  }

  /** Returns a whole number that is not negative; IllegalArgumentException for another field. */
  public int count(String name) {
    JsonNode value = json.get(name);
    if (value == null || !value.isInt() || value.intValue() < 0) {
      throw improper(name);
    }
    return value.intValue();
  }

  /** Tells whether a field is there and null. */
  public boolean isNull(String name) {
    JsonNode value = json.get(name);
    return value != null && value.isNull();
  }

  private static IllegalArgumentException improper(String name) {
    return new IllegalArgumentException("an executor's question has no proper '" + name + "'");
  }
}

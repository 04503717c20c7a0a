package io.lockgate.spark.messages;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.exc.InputCoercionException;
import com.fasterxml.jackson.databind.JsonMappingException;
import com.fasterxml.jackson.databind.exc.InvalidNullException;
import com.fasterxml.jackson.databind.exc.MismatchedInputException;
import com.fasterxml.jackson.databind.exc.UnrecognizedPropertyException;
import java.util.Collection;
import java.util.Map;

/**
 * What is wrong with a message that could not be read, in the words of {@code
 * lockgate.framework.spark.messages.shapes}: keys are named, values never.
 */
final class Faults {
  static final String NO_FORM = "has none of its forms";

  private static final String WHOLE = "whole number of 64 bits";
  private static final String MISSING = "Missing required creator property";

  private Faults() {}

  static String of(JsonProcessingException failure) {
    String path = failure instanceof JsonMappingException inside ? path(inside) : "";
    for (Throwable each = failure; each != null; each = each.getCause()) {
      if (each instanceof KeyFault key) {
        return named(below(path, key.key())) + " " + key.fault();
      } else if (each instanceof InputCoercionException) {
        return named(path) + " is not a " + WHOLE;
      }
    }
    if (failure instanceof UnrecognizedPropertyException) {
      return named(path) + " is not declared";
    } else if (failure.getOriginalMessage().startsWith(MISSING)) {
      return named(path) + " is missing";
    } else if (failure instanceof InvalidNullException) {
      return named(path) + " is null"; // in a collection, whose kind of elements Jackson mistakes
    } else if (failure instanceof MismatchedInputException mismatch
        && mismatch.getTargetType() != null) {
      return named(path) + " is not " + withArticle(kind(mismatch.getTargetType()));
    }
    return named(path) + " is not JSON, or a key is in it twice";
  }

  static String withArticle(String kind) {
    return (kind.equals("object") ? "an " : "a ") + kind;
  }

  static String kind(Class<?> type) {
    if (type == String.class) {
      return "text";
    } else if (type == long.class || type == Long.class) {
      return WHOLE;
    } else if (type == double.class || type == Double.class) {
      return "number";
    } else if (type == boolean.class || type == Boolean.class) {
      return "boolean";
    }
    return Collection.class.isAssignableFrom(type) ? "list" : "object";
  }

  private static String path(JsonMappingException failure) {
    String path = "";
    for (JsonMappingException.Reference each : failure.getPath()) {
      boolean isOfMap =
          each.getFrom() instanceof Map
              || each.getFrom() instanceof Class<?> type && Map.class.isAssignableFrom(type);
      if (each.getFieldName() == null) {
        path += "[]";
      } else {
        path = below(path, isOfMap ? "*" : each.getFieldName());
      }
    }
    return path;
  }

  private static String below(String path, String name) {
    return path.isEmpty() || name.isEmpty() ? path + name : path + "." + name;
  }

  private static String named(String path) {
    return path.isEmpty() ? "it" : path;
  }
}

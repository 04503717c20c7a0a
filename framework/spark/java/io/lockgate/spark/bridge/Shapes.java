package io.lockgate.spark.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Map;

/**
 * The shapes of Python's answers, as its operations declare them: {@code
 * lockgate.framework.spark.messages.shapes} says what a shape is.
 *
 * <p>An answer is checked where it arrives, so that whatever reads it finds what it looks for.
 */
public final class Shapes {
  private static final String DECLARATION = "/META-INF/lockgate/bridge-messages.json";
  private static final JsonNode DECLARED = read();

  private Shapes() {}

  /**
   * Passes on what Python answered to an operation, if it has the shape of answers that is declared
   * under a name; an error names the operation and what is wrong.
   */
  static JsonNode checked(String name, String operation, JsonNode answer) {
    // A plugin of others may declare nothing.
    JsonNode messages = DECLARED.get("operations").get(name);
    String fault = messages == null ? null : fault(messages.get("answer"), answer, "");
    if (fault != null) {
      throw Failure.thrown(
          "Python's answer to '" + operation + "' is not as declared: " + fault,
          "BridgeError",
          null);
    }
    return answer;
  }

  /** Tells what is wrong with a request of an operation of ours, null if it is as declared. */
  public static String faultInRequest(String operation, JsonNode request) {
    return fault(DECLARED.get("operations").get(operation).get("request"), request, "");
  }

  /** Tells what is wrong with a message, null if it has its shape. */
  public static String fault(JsonNode shape, JsonNode value, String path) {
    if (shape.isTextual()) {
      return isLeaf(shape.textValue(), value)
          ? null
          : named(path)
              + " is not a "
              + (shape.textValue().equals("whole") ? "whole number of 64 bits" : shape.textValue());
    }
    Map.Entry<String, JsonNode> rule = shape.properties().iterator().next();
    JsonNode inside = rule.getValue();
    return switch (rule.getKey()) {
      case "null or" -> value.isNull() ? null : fault(inside, value, path);
      case "list" -> inList(inside, value, path);
      case "map" -> inMap(inside, value, path);
      case "keys" -> inKeys(inside, value, path);
      case "type" -> inType(DECLARED.get("types").get(inside.textValue()), value, path);
      case "either" -> inEither(inside, value, path);
      case "tuple" -> inTuple(inside, value, path);
      case "is" ->
          value.equals(inside) ? null : named(path) + " is not '" + inside.textValue() + "'";
      default -> throw new IllegalStateException("no rule of shapes: " + rule.getKey());
    };
  }

  private static boolean isLeaf(String leaf, JsonNode value) {
    return switch (leaf) {
      case "any" -> true;
      case "boolean" -> value.isBoolean();
      case "number" -> value.isNumber();
      case "whole" -> value.isIntegralNumber() && value.canConvertToLong();
      default -> value.isTextual();
    };
  }

  private static String inList(JsonNode inside, JsonNode value, String path) {
    if (!value.isArray()) {
      return named(path) + " is not a list";
    }
    for (JsonNode each : value) {
      String fault = fault(inside, each, path + "[]");
      if (fault != null) {
        return fault;
      }
    }
    return null;
  }

  private static String inMap(JsonNode inside, JsonNode value, String path) {
    if (!value.isObject()) {
      return named(path) + " is not an object";
    }
    for (JsonNode each : value) {
      String fault = fault(inside, each, below(path, "*"));
      if (fault != null) {
        return fault;
      }
    }
    return null;
  }

  private static String inType(JsonNode type, JsonNode value, String path) {
    return type.has("forms")
        ? inEither(type.get("forms"), value, path)
        : inKeys(fields(type), value, path);
  }

  private static ObjectNode fields(JsonNode type) {
    ObjectNode all = Bridge.object();
    for (JsonNode base : type.get("bases")) {
      all.setAll(fields(DECLARED.get("types").get(base.textValue())));
    }
    return all.setAll((ObjectNode) type.get("fields"));
  }

  private static String inKeys(JsonNode inside, JsonNode value, String path) {
    if (!value.isObject()) {
      return named(path) + " is not an object";
    }
    for (Map.Entry<String, JsonNode> key : inside.properties()) {
      String below = below(path, key.getKey());
      JsonNode found = value.get(key.getKey());
      String fault = found == null ? below + " is missing" : fault(key.getValue(), found, below);
      if (fault != null) {
        return fault;
      }
    }
    for (Map.Entry<String, JsonNode> key : value.properties()) {
      if (!inside.has(key.getKey())) {
        return below(path, key.getKey()) + " is not declared";
      }
    }
    return null;
  }

  private static String inTuple(JsonNode inside, JsonNode value, String path) {
    if (!value.isArray() || value.size() != inside.size()) {
      return named(path) + " is not a list of " + inside.size();
    }
    for (int index = 0; index < inside.size(); index++) {
      String fault = fault(inside.get(index), value.get(index), path + "[" + index + "]");
      if (fault != null) {
        return fault;
      }
    }
    return null;
  }

  private static String inEither(JsonNode inside, JsonNode value, String path) {
    String meant = null;
    int forms = 0;
    for (JsonNode form : inside) {
      JsonNode shape =
          form.isTextual() && DECLARED.get("types").has(form.textValue())
              ? Bridge.object().set("keys", fields(DECLARED.get("types").get(form.textValue())))
              : form;
      String fault = fault(shape, value, path);
      if (fault == null) {
        return null;
      }
      if (isMeant(shape, value)) {
        meant = fault;
        forms++;
      }
    }
    return forms == 1 ? meant : named(path) + " has none of its forms";
  }

  /** Tells whether a message names this form of several by its fixed texts. */
  private static boolean isMeant(JsonNode shape, JsonNode value) {
    JsonNode keys = shape.get("keys");
    if (keys == null) {
      return false;
    }
    boolean fixed = false;
    for (Map.Entry<String, JsonNode> key : keys.properties()) {
      JsonNode text = key.getValue().get("is");
      if (text != null && !text.equals(value.get(key.getKey()))) {
        return false;
      }
      fixed |= text != null;
    }
    return fixed;
  }

  private static String below(String path, String name) {
    return path.isEmpty() ? name : path + "." + name;
  }

  private static String named(String path) {
    return path.isEmpty() ? "it" : path;
  }

  private static JsonNode read() {
    try (InputStream in = Shapes.class.getResourceAsStream(DECLARATION)) {
      return Bridge.JSON.readTree(in);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}

package io.lockgate.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;

/** Where the driver's Python leaves its brain, and how Java asks it. */
public final class Bridge {
  public static final ObjectMapper JSON = new ObjectMapper();

  /** A payload above this many characters goes through a file: py4j would escape and copy it several times. */
  static final int LARGEST_INLINE = 1 << 20;

  private static final Properties VERSION = readVersion();
  private static volatile Brain brain;

  private Bridge() {}

  /** Put Python's brain in place, unless it is of another version; returns what is wrong, or null. */
  public static String register(Brain candidate, String version, int protocol) {
    if (!version.equals(version()) || protocol != protocol()) {
      return "the connector jar is of version " + version() + " (protocol " + protocol() + ")";
    }
    brain = candidate;
    return null;
  }

  /** Whether a brain is in place. */
  public static boolean isAttached() {
    return brain != null;
  }

  public static String version() {
    return VERSION.getProperty("version", "unknown");
  }

  public static int protocol() {
    return Integer.parseInt(VERSION.getProperty("protocol", "-1"));
  }

  public static ObjectNode object() {
    return JSON.createObjectNode();
  }

  /** Ask Python; an error it answers is thrown as an AnalysisException with its message. */
  public static JsonNode ask(String operation, ObjectNode request) {
    Brain asked = brain;
    if (asked == null) {
      throw failure("Lockgate is not attached to this Spark session: call lockgate.attach(spark) first");
    }
    JsonNode reply;
    try {
      reply = JSON.readTree(asked.call(operation, outgoing(request)));
      if (reply.hasNonNull("ref")) {
        reply = fetch(Path.of(reply.get("ref").asText()));
      }
    } catch (IOException | RuntimeException e) {
      throw Failure.thrown("Lockgate's Python side did not answer '" + operation + "': " + e.getMessage(), "BridgeError", e);
    }
    JsonNode error = reply.get("error");
    if (error != null) {
      throw Failure.thrown(error.get("message").asText(), error.path("type").asText(), null);
    }
    return reply.path("ok");
  }

  /** An AnalysisException with a plain message; it is checked in Java, so it goes past the compiler. */
  public static RuntimeException failure(String message) {
    return Failure.thrown(message, null, null);
  }

  private static String outgoing(ObjectNode request) throws IOException {
    String text = request.toString();
    if (text.length() <= LARGEST_INLINE) {
      return text;
    }
    Path file = Files.createTempFile("lockgate-", ".json");
    Files.writeString(file, text);
    return object().put("ref", file.toString()).toString();
  }

  private static JsonNode fetch(Path file) throws IOException {
    try {
      return JSON.readTree(file.toFile());
    } finally {
      Files.deleteIfExists(file);
    }
  }

  private static Properties readVersion() {
    Properties properties = new Properties();
    try (InputStream in = Bridge.class.getResourceAsStream("version.properties")) {
      if (in != null) {
        properties.load(in);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return properties;
  }
}

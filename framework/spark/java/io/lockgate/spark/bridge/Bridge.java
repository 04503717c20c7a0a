package io.lockgate.spark.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.ClosedByInterruptException;
import java.util.Set;
import org.apache.spark.sql.classic.SparkSession;

/** Requests of Java to the driver's Python, and the registration of that Python. */
public final class Bridge {
  public static final ObjectMapper JSON = new ObjectMapper();

  /**
   * Requests that change nothing, so that an interrupt, as when a stream stops, may end the wait.
   * All others wait for the answer: Spark would remove the files of a commit that nobody waits for.
   */
  private static final Set<String> INTERRUPTIBLE =
      Set.of(
          "scan.filters",
          "scan.plan",
          "scan.aggregates",
          "scan.selective",
          "changes.plan",
          "changes.range",
          "stream.batch",
          "stream.end",
          "stream.newest",
          "system.rows",
          "system.single_rows",
          "table.load",
          "table.list");

  private static volatile PythonSide python;
  private static volatile boolean governed;

  private Bridge() {}

  /**
   * Registers the Python that listens in {@code folder} and knows {@code secret} as the driver's,
   * unless its version differs; returns what is wrong, or null.
   */
  public static synchronized String register(
      String folder, String secret, String version, int protocol) throws IOException {
    if (!version.equals(ConnectorVersion.version()) || protocol != ConnectorVersion.protocol()) {
      return "the connector jar is of version "
          + ConnectorVersion.version()
          + " (protocol "
          + ConnectorVersion.protocol()
          + ")";
    }
    PythonSide before = python;
    if (before == null || !before.is(folder, secret)) {
      python = new PythonSide(folder, secret);
      askAgain();
      if (before != null) {
        before.close();
      }
    }
    return null;
  }

  /** Forgets the Python that has ended, so that every question waits for the next one. */
  static synchronized void forget() {
    if (python != null) {
      python.close();
      python = null;
    }
  }

  /** The Python that answers, or null. */
  public static PythonSide python() {
    return python;
  }

  /** Tells whether questions go to this Python, and it has not ended. */
  public static boolean isAnsweredBy(PythonSide side) {
    return side != null && python == side && !PythonChild.isGone();
  }

  /** Tells whether Python has made itself known. */
  public static boolean isAttached() {
    return python != null;
  }

  /**
   * Tells whether anybody decides about access, as Python said with its last answer; a Python that
   * has said nothing so far is to be asked.
   */
  public static boolean isGoverned() {
    return governed;
  }

  /** Notes that the next statement asks whether anybody decides about access. */
  public static void askAgain() {
    governed = true;
  }

  public static ObjectNode object() {
    return JSON.createObjectNode();
  }

  /** Ask Python; an error it answers is thrown as an AnalysisException with its message. */
  public static JsonNode ask(String operation, ObjectNode request) {
    SparkSession session = RequestSessions.grantedTo(request);
    return session == null
        ? asked(operation, request)
        : RequestSessions.within(session, () -> asked(operation, request));
  }

  private static JsonNode asked(String operation, ObjectNode request) {
    JsonNode reply =
        Shapes.checked(Shapes.ENVELOPE, operation, reply(answering(), operation, request));
    JsonNode error = reply.get("error");
    if (error != null) {
      throw Failure.thrown(error.get("message").asText(), error.get("type").asText(), null);
    }
    governed = reply.get("governed").asBoolean();
    return Shapes.checked(operation, operation, reply.get("ok"));
  }

  /** The Python that answers; it is started if no Python program started this JVM. */
  private static PythonSide answering() {
    if (PythonChild.isGone() || python == null) {
      PythonChild.await();
    }
    PythonSide answering = python;
    if (answering == null) {
      throw Failure.thrown("Lockgate's Python ended as it started", "BridgeError", null);
    }
    return answering;
  }

  private static JsonNode reply(PythonSide asked, String operation, ObjectNode request) {
    ObjectNode message = object().put("operation", operation);
    message.set("request", request);
    long asker = RequestSessions.note(message);
    try {
      return JSON.readTree(
          asked.ask(JSON.writeValueAsBytes(message), INTERRUPTIBLE.contains(operation)));
    } catch (ClosedByInterruptException e) {
      // Spark knows by this class that a stream or a job was stopped.
      throw new UncheckedIOException(
          "interrupted while Lockgate's Python side answered '" + operation + "'", e);
    } catch (IOException | RuntimeException e) {
      throw Failure.thrown(
          "Lockgate's Python side did not answer '" + operation + "': " + e.getMessage(),
          "BridgeError",
          e);
    } finally {
      RequestSessions.forget(asker);
    }
  }

  /**
   * An AnalysisException with a plain message; it is checked in Java, so it goes past the compiler.
   */
  public static RuntimeException failure(String message) {
    return Failure.thrown(message, null, null);
  }
}

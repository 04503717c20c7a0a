package io.lockgate.spark.bridge;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.messages.Granted;
import io.lockgate.spark.messages.Messages;
import io.lockgate.spark.messages.Operation;
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
   * unless its version differs; returns what is wrong, or null. A child of this JVM does not take
   * the place of a program, and ends when one registers.
   */
  public static synchronized String register(
      String folder, String secret, String version, int protocol, boolean isChild)
      throws IOException {
    if (!version.equals(ConnectorVersion.version()) || protocol != ConnectorVersion.protocol()) {
      return "the connector jar is of version "
          + ConnectorVersion.version()
          + " (protocol "
          + ConnectorVersion.protocol()
          + ")";
    }
    PythonSide before = python;
    if (isChild && before != null) {
      return "another Python answers this JVM, which has";
    }
    if (!isChild) {
      PythonChild.end();
    }
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

  /** Asks Python; an error that it answers is thrown as an AnalysisException with its message. */
  public static <Q, A> A ask(Operation<Q, A> operation, Q request) {
    String grant = request instanceof Granted granted ? granted.grant() : null;
    SparkSession session = RequestSessions.grantedTo(grant);
    return session == null
        ? asked(operation, request)
        : RequestSessions.within(session, () -> asked(operation, request));
  }

  /** Asks for an operation of another plugin, whose messages are not declared. */
  public static JsonNode ask(String operation, ObjectNode request) {
    JsonNode grant = request.get("grant");
    SparkSession session = RequestSessions.grantedTo(grant == null ? null : grant.textValue());
    Operation<Object, JsonNode> undeclared =
        new Operation<>(operation, new TypeReference<JsonNode>() {}, true);
    JsonNode answer =
        session == null
            ? asked(undeclared, request)
            : RequestSessions.within(session, () -> asked(undeclared, request));
    return Shapes.checked(operation, operation, answer);
  }

  private static <A> A asked(Operation<?, A> operation, Object request) {
    Messages.Reply<A> reply = reply(answering(), operation, request);
    if (reply.error() != null) {
      throw Failure.thrown(reply.error().message(), reply.error().type(), null);
    }
    governed = reply.governed();
    return reply.ok();
  }

  /** The Python that answers; it is started if no Python program has attached. */
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

  private static <A> Messages.Reply<A> reply(
      PythonSide asked, Operation<?, A> operation, Object request) {
    String name = operation.name();
    RequestSessions.Asker asker = RequestSessions.note();
    Question question =
        new Question(name, request, Users.current(), asker.number(), asker.session());
    try {
      byte[] answer = asked.ask(Messages.write(question), INTERRUPTIBLE.contains(name));
      return Messages.readReply(answer, operation);
    } catch (Messages.FaultException e) {
      throw Failure.thrown(
          "Python's answer to '" + name + "' is not as declared: " + e.getMessage(),
          "BridgeError",
          null);
    } catch (ClosedByInterruptException e) {
      // Spark knows by this class that a stream or a job was stopped.
      throw new UncheckedIOException(
          "interrupted while Lockgate's Python side answered '" + name + "'", e);
    } catch (IOException | RuntimeException e) {
      throw Failure.thrown(
          "Lockgate's Python side did not answer '" + name + "': " + e.getMessage(),
          "BridgeError",
          e);
    } finally {
      RequestSessions.forget(asker);
    }
  }

  /** A question, in the words of {@code QuestionJson}. */
  private record Question(
      String operation, Object request, String user, Long asker, String session) {}

  /**
   * An AnalysisException with a plain message; it is checked in Java, so it goes past the compiler.
   */
  public static RuntimeException failure(String message) {
    return Failure.thrown(message, null, null);
  }
}

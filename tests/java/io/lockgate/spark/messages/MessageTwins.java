package io.lockgate.spark.messages;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Locale;

/** What the connector finds wrong with messages. */
public final class MessageTwins {
  private static final ObjectMapper JSON = new ObjectMapper();

  private MessageTwins() {}

  /** Returns the faults of answers, each {@code {"operation", "value"}}; null for one without. */
  public static String faultsInAnswers(String cases) throws Exception {
    ArrayNode faults = JSON.createArrayNode();
    for (JsonNode each : JSON.readTree(cases)) {
      ObjectNode reply = JSON.createObjectNode().put("governed", false);
      reply.set("ok", each.get("value"));
      faults.add(fault(() -> read(reply, operation(each.get("operation").textValue()))));
    }
    return faults.toString();
  }

  /** Returns the faults of messages, each {@code {"type", "value"}}; null for one without. */
  public static String faults(String cases) throws Exception {
    ArrayNode faults = JSON.createArrayNode();
    for (JsonNode each : JSON.readTree(cases)) {
      Class<?> type = Class.forName("io.lockgate.spark.messages." + each.get("type").textValue());
      faults.add(fault(() -> Messages.read(each.get("value"), type)));
    }
    return faults.toString();
  }

  private interface Reading {
    void run() throws Exception;
  }

  private static void read(ObjectNode reply, Operation<?, ?> operation) throws Exception {
    Messages.readReply(JSON.writeValueAsBytes(reply), operation);
  }

  private static String fault(Reading reading) throws Exception {
    try {
      reading.run();
      return null;
    } catch (Messages.FaultException fault) {
      return fault.getMessage();
    }
  }

  private static Operation<?, ?> operation(String name) throws ReflectiveOperationException {
    String constant = name.replace('.', '_').toUpperCase(Locale.ROOT);
    return (Operation<?, ?>) Operations.class.getField(constant).get(null);
  }
}

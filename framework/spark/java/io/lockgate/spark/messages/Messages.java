package io.lockgate.spark.messages;

import com.fasterxml.jackson.annotation.JsonSetter;
import com.fasterxml.jackson.annotation.Nulls;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JavaType;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.MapperFeature;
import com.fasterxml.jackson.databind.cfg.CoercionAction;
import com.fasterxml.jackson.databind.cfg.CoercionInputShape;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.type.LogicalType;
import java.io.IOException;
import java.util.List;

/**
 * Reads and writes the records that are made of {@code bridge-messages.json}. Keys that are
 * missing, null or of another kind than declared are refused, and so are those that are not
 * declared.
 */
public final class Messages {
  private static final JsonMapper JSON =
      JsonMapper.builder()
          .enable(DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES)
          .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
          .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
          .disable(MapperFeature.ALLOW_COERCION_OF_SCALARS)
          .disable(DeserializationFeature.ACCEPT_FLOAT_AS_INT)
          .defaultSetterInfo(JsonSetter.Value.forContentNulls(Nulls.FAIL))
          .withCoercionConfig(
              LogicalType.Textual,
              config ->
                  config
                      .setCoercion(CoercionInputShape.Integer, CoercionAction.Fail)
                      .setCoercion(CoercionInputShape.Float, CoercionAction.Fail)
                      .setCoercion(CoercionInputShape.Boolean, CoercionAction.Fail))
          .build();

  /** A message that is not as declared; its text says what is wrong, and holds no value. */
  public static final class FaultException extends IOException {
    private static final long serialVersionUID = 1;

    FaultException(String fault) {
      super(fault);
    }
  }

  /** The answer of an operation, or the error that it ended with. */
  public record Reply<A>(A ok, boolean governed, ErrorJson error) {}

  private static final DeserializationFeature TRAILING =
      DeserializationFeature.FAIL_ON_TRAILING_TOKENS;

  private Messages() {}

  /** Returns a message as JSON. */
  public static byte[] write(Object message) {
    try {
      return JSON.writeValueAsBytes(message);
    } catch (JsonProcessingException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  /** Returns a message as JSON, for what knows it by its keys. */
  public static JsonNode tree(Object message) {
    return JSON.valueToTree(message);
  }

  /** Reads a message. */
  public static <T> T read(byte[] message, Class<T> type) throws IOException {
    try {
      return required(JSON.readerFor(type).with(TRAILING).<T>readValue(message), type);
    } catch (JsonProcessingException failure) {
      throw new FaultException(Faults.of(failure));
    }
  }

  /** Reads a message that is part of another one, which is not declared. */
  public static <T> T read(JsonNode message, Class<T> type) throws IOException {
    try {
      return required(JSON.treeToValue(message, type), type);
    } catch (JsonProcessingException failure) {
      throw new FaultException(Faults.of(failure));
    }
  }

  /** Reads the answer of an operation, which the driver passed on. */
  public static <A> A read(JsonNode answer, Operation<?, A> operation) throws IOException {
    JavaType type = JSON.constructType(operation.answer());
    try {
      A found = JSON.readerFor(type).readValue(answer);
      return operation.isNullable() ? found : required(found, type.getRawClass());
    } catch (JsonProcessingException failure) {
      throw new FaultException(Faults.of(failure));
    }
  }

  /** Reads messages that a task of this connector wrote. */
  public static <T> List<T> readAll(String messages, Class<T> type) {
    try {
      return JSON.readValue(
          messages, JSON.getTypeFactory().constructCollectionType(List.class, type));
    } catch (JsonProcessingException failure) {
      throw new IllegalStateException("a task's messages: " + Faults.of(failure));
    }
  }

  /** Reads the reply to an operation: {@code {"ok", "governed"}} or {@code {"error"}}. */
  public static <A> Reply<A> readReply(byte[] message, Operation<?, A> operation)
      throws IOException {
    JavaType answer = JSON.constructType(operation.answer());
    try (JsonParser parser = JSON.createParser(message)) {
      Reply<A> reply = reply(parser, answer);
      if (reply.error() == null && !operation.isNullable()) {
        required(reply.ok(), answer.getRawClass());
      }
      return reply;
    } catch (JsonProcessingException failure) {
      throw new FaultException(Faults.of(failure));
    }
  }

  private static <A> Reply<A> reply(JsonParser parser, JavaType type) throws IOException {
    A ok = null;
    ErrorJson error = null;
    Boolean governed = null;
    boolean isAnswered = false;
    check(parser.nextToken() == JsonToken.START_OBJECT, "it is not an object");
    for (String key = parser.nextFieldName(); key != null; key = parser.nextFieldName()) {
      parser.nextToken();
      switch (key) {
        case "ok" -> {
          ok = JSON.readValue(parser, type);
          isAnswered = true;
        }
        case "governed" -> governed = JSON.readValue(parser, Boolean.class);
        case "error" -> error = JSON.readValue(parser, ErrorJson.class);
        default -> throw new FaultException(key + " is not declared");
      }
    }
    check(parser.currentToken() == JsonToken.END_OBJECT, "it ends too early");
    check(parser.nextToken() == null, "something follows it");
    boolean isAnswer = isAnswered && governed != null && error == null;
    check(isAnswer || error != null && governed == null && !isAnswered, "it " + Faults.NO_FORM);
    return new Reply<>(ok, isAnswer && governed, error);
  }

  private static <T> T required(T message, Class<?> type) throws FaultException {
    check(message != null, "it is not " + Faults.withArticle(Faults.kind(type)));
    return message;
  }

  private static void check(boolean holds, String fault) throws FaultException {
    if (!holds) {
      throw new FaultException(fault);
    }
  }
}

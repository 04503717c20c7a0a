package io.lockgate.spark.messages;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.DeserializationContext;
import com.fasterxml.jackson.databind.JsonMappingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.deser.std.StdDeserializer;
import java.io.IOException;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Reads a message that has one of several forms. */
abstract class FormReader<T> extends StdDeserializer<T> {
  private static final long serialVersionUID = 1;

  private final Class<T> union;
  private final transient List<Form> forms;

  /** A form: its type, its keys, and the texts that some of them always have. */
  record Form(Class<?> type, Set<String> keys, Map<String, String> fixed) {
    boolean isOf(JsonNode message) {
      if (!fixed.isEmpty()) {
        return fixed.entrySet().stream()
            .allMatch(
                text ->
                    message.has(text.getKey())
                        && text.getValue().equals(message.get(text.getKey()).textValue()));
      }
      Set<String> names = new HashSet<>();
      message.fieldNames().forEachRemaining(names::add);
      return names.equals(keys);
    }
  }

  FormReader(Class<T> union, List<Form> forms) {
    super(union);
    this.union = union;
    this.forms = forms;
  }

  @Override
  public T deserialize(JsonParser parser, DeserializationContext context) throws IOException {
    JsonNode message = context.readTree(parser);
    for (Form form : forms) {
      if (form.isOf(message)) {
        return union.cast(context.readTreeAsValue(message, form.type()));
      }
    }
    throw JsonMappingException.from(parser, Faults.NO_FORM, new KeyFault("", Faults.NO_FORM));
  }
}

import java.util.ArrayList;
import java.util.List;
import org.apache.paimon.schema.SchemaChange;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypeJsonParser;

/** Changes of a schema from JSON: {"change": "add", "name": ["s", "x"], ...}. */
final class Evolution {
  private Evolution() {}

  static List<SchemaChange> changes(JsonNode json) {
    List<SchemaChange> changes = new ArrayList<>();
    json.forEach(each -> changes.add(change(each)));
    return changes;
  }

  private static SchemaChange change(JsonNode json) {
    String[] name = names(json.get("name"));
    switch (json.get("change").textValue()) {
      case "add":
        return SchemaChange.addColumn(name, type(json), text(json, "comment"), move(json));
      case "rename":
        return SchemaChange.renameColumn(name, json.get("to").textValue());
      case "drop":
        return SchemaChange.dropColumn(name);
      case "type":
        return SchemaChange.updateColumnType(name, type(json), true);
      case "nullable":
        return SchemaChange.updateColumnNullability(name, json.get("to").booleanValue());
      case "comment":
        return SchemaChange.updateColumnComment(name, json.get("to").textValue());
      case "default":
        return SchemaChange.updateColumnDefaultValue(name, json.get("to").textValue());
      case "move":
        return SchemaChange.updateColumnPosition(move(json));
      case "option":
        return SchemaChange.setOption(json.get("key").textValue(), json.get("to").textValue());
      default:
        throw new IllegalArgumentException("no such change: " + json);
    }
  }

  private static SchemaChange.Move move(JsonNode json) {
    String name = json.get("name").get(json.get("name").size() - 1).textValue();
    if (json.path("first").booleanValue()) {
      return SchemaChange.Move.first(name);
    }
    return json.has("after") ? SchemaChange.Move.after(name, json.get("after").textValue()) : null;
  }

  private static DataType type(JsonNode json) {
    return DataTypeJsonParser.parseDataType(json.get("type"));
  }

  private static String text(JsonNode json, String name) {
    return json.has(name) ? json.get(name).textValue() : null;
  }

  private static String[] names(JsonNode json) {
    List<String> names = new ArrayList<>();
    if (json != null) {
      json.forEach(each -> names.add(each.textValue()));
    }
    return names.toArray(new String[0]);
  }
}

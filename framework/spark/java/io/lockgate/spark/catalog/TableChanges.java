package io.lockgate.spark.catalog;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Values;
import org.apache.spark.sql.connector.catalog.TableChange;

/** The changes of an ALTER TABLE as JSON. */
public final class TableChanges {
  private TableChanges() {}

  public static void write(TableChange[] changes, ArrayNode out) {
    for (TableChange change : changes) {
      write(change, out.addObject());
    }
  }

  private static void write(TableChange change, ObjectNode out) {
    if (change instanceof TableChange.ColumnChange column) {
      out.set("path", Bridge.JSON.valueToTree(column.fieldNames()));
    }
    if (change instanceof TableChange.AddColumn add) {
      out.put("change", "add").put("nullable", add.isNullable()).put("comment", add.comment());
      out.set("type", Values.storedTypeToJson(String.join(".", add.fieldNames()), add.dataType()));
      out.put("default", add.defaultValue() == null ? null : add.defaultValue().getSql());
      write(add.position(), out);
    } else if (change instanceof TableChange.DeleteColumn delete) {
      out.put("change", "drop").put("if_exists", delete.ifExists());
    } else if (change instanceof TableChange.RenameColumn rename) {
      out.put("change", "rename").put("name", rename.newName());
    } else if (change instanceof TableChange.UpdateColumnType type) {
      String column = String.join(".", type.fieldNames());
      out.put("change", "type").set("type", Values.storedTypeToJson(column, type.newDataType()));
    } else if (change instanceof TableChange.UpdateColumnNullability nullability) {
      out.put("change", "nullability").put("nullable", nullability.nullable());
    } else if (change instanceof TableChange.UpdateColumnComment comment) {
      out.put("change", "comment").put("comment", comment.newComment());
    } else if (change instanceof TableChange.UpdateColumnDefaultValue value) {
      out.put("change", "default").put("default", sql(value));
    } else if (change instanceof TableChange.UpdateColumnPosition position) {
      out.put("change", "move");
      write(position.position(), out);
    } else if (change instanceof TableChange.SetProperty property) {
      out.put("change", "set").put("key", property.property()).put("value", property.value());
    } else if (change instanceof TableChange.RemoveProperty property) {
      out.put("change", "remove").put("key", property.property());
    } else {
      throw Bridge.failure("ALTER TABLE cannot do this: " + change.getClass().getSimpleName());
    }
  }

  /**
   * The SQL of a default, empty if there is to be none; its successor, an expression, need not have
   * any.
   */
  @SuppressWarnings("deprecation") // the text is what is stored
  private static String sql(TableChange.UpdateColumnDefaultValue change) {
    return change.newDefaultValue();
  }

  private static void write(TableChange.ColumnPosition position, ObjectNode out) {
    if (position == null) {
      out.putNull("position");
    } else {
      String before = position instanceof TableChange.After after ? after.column() : null;
      out.putObject("position").put("after", before);
    }
  }
}

package io.lockgate.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import io.lockgate.spark.bridge.Bridge;
import io.lockgate.spark.bridge.Values;
import io.lockgate.spark.messages.AddColumnJson;
import io.lockgate.spark.messages.Change;
import io.lockgate.spark.messages.ChangeCommentJson;
import io.lockgate.spark.messages.ChangeDefaultJson;
import io.lockgate.spark.messages.ChangeNullabilityJson;
import io.lockgate.spark.messages.ChangeTypeJson;
import io.lockgate.spark.messages.DropColumnJson;
import io.lockgate.spark.messages.MoveColumnJson;
import io.lockgate.spark.messages.PositionJson;
import io.lockgate.spark.messages.RemoveProperty;
import io.lockgate.spark.messages.RenameColumnJson;
import io.lockgate.spark.messages.SetProperty;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.types.DataType;

/** The changes of an ALTER TABLE as messages. */
public final class TableChanges {
  private TableChanges() {}

  public static List<Change> messages(TableChange[] changes) {
    return Arrays.stream(changes).map(TableChanges::message).toList();
  }

  private static Change message(TableChange change) {
    List<String> path =
        change instanceof TableChange.ColumnChange column ? List.of(column.fieldNames()) : null;
    if (change instanceof TableChange.AddColumn add) {
      return new AddColumnJson(
          path,
          type(path, add.dataType()),
          add.isNullable(),
          add.comment(),
          add.defaultValue() == null ? null : add.defaultValue().getSql(),
          position(add.position()));
    } else if (change instanceof TableChange.DeleteColumn delete) {
      return new DropColumnJson(path, delete.ifExists());
    } else if (change instanceof TableChange.RenameColumn rename) {
      return new RenameColumnJson(path, rename.newName());
    } else if (change instanceof TableChange.UpdateColumnType type) {
      return new ChangeTypeJson(path, type(path, type.newDataType()));
    } else if (change instanceof TableChange.UpdateColumnNullability nullability) {
      return new ChangeNullabilityJson(path, nullability.nullable());
    } else if (change instanceof TableChange.UpdateColumnComment comment) {
      return new ChangeCommentJson(path, comment.newComment());
    } else if (change instanceof TableChange.UpdateColumnDefaultValue value) {
      return new ChangeDefaultJson(path, sql(value));
    } else if (change instanceof TableChange.UpdateColumnPosition position) {
      return new MoveColumnJson(path, position(position.position()));
    } else if (change instanceof TableChange.SetProperty property) {
      return new SetProperty(property.property(), property.value());
    } else if (change instanceof TableChange.RemoveProperty property) {
      return new RemoveProperty(property.property());
    }
    throw Bridge.failure("ALTER TABLE cannot do this: " + change.getClass().getSimpleName());
  }

  private static JsonNode type(List<String> path, DataType type) {
    return Values.storedTypeToJson(String.join(".", path), type);
  }

  /**
   * The SQL of a default, empty if there is to be none; its successor, an expression, need not have
   * any.
   */
  @SuppressWarnings("deprecation") // the text is what is stored
  private static String sql(TableChange.UpdateColumnDefaultValue change) {
    return change.newDefaultValue();
  }

  private static PositionJson position(TableChange.ColumnPosition position) {
    if (position == null) {
      return null;
    }
    return new PositionJson(position instanceof TableChange.After after ? after.column() : null);
  }
}

package io.lockgate.spark.merge;

import io.lockgate.spark.merge.functions.Order;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToIntFunction;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;

/**
 * Values that are not null are set, those of groups in the groups' own orders; source: Paimon's
 * {@code PartialUpdateMergeFunction}.
 */
final class PartialUpdate extends RowEngine {
  /** The fields of a sequence group, and the ordinals of the columns that order it. */
  private record Group(int[] order, boolean removes, List<Field> fields) {}

  private final List<Group> groups = new ArrayList<>();
  private final List<Field> free = new ArrayList<>();
  private boolean filled;
  private boolean inserted;

  PartialUpdate(MergePlan plan, DataType[] types, ToIntFunction<String> ordinals) {
    super(plan, types, ordinals);
    for (int i = 0; i < plan.groups().size(); i++) {
      int number = i;
      int[] order = plan.groups().get(i).columns().stream().mapToInt(ordinals).toArray();
      if (java.util.Arrays.stream(order).allMatch(at -> at >= 0)) {
        groups.add(
            new Group(
                order,
                plan.groups().get(i).removes(),
                fields.stream().filter(each -> each.plan.group() == number).toList()));
        for (int at : order) {
          merged[at] = true;
        }
      }
    }
    fields.stream().filter(each -> each.plan.group() < 0).forEach(free::add);
  }

  @Override
  public void reset() {
    super.reset();
    filled = false;
    inserted = false;
  }

  @Override
  public boolean isDeleted() {
    return removed || !inserted;
  }

  @Override
  void begin(InternalRow row) {
    super.begin(row);
    for (Group group : groups) {
      setOrder(group, row);
    }
  }

  @Override
  public void add(InternalRow row, byte kind) {
    removed = false;
    if (retracts(kind)) {
      takeBack(row, kind);
      return;
    }
    newest = row;
    filled = true;
    inserted = true;
    for (Field field : free) {
      takeIn(field, row);
    }
    for (Group group : groups) {
      if (touches(group, row)) {
        takeIn(group, row, isNewest(group, row));
      }
    }
  }

  private void takeIn(Group group, InternalRow row, boolean newer) {
    for (Field field : group.fields()) {
      if (newer) {
        takeIn(field, row);
      } else {
        Object late = read(row, field.at);
        values[field.at] = field.function.addLate(values[field.at], late);
      }
    }
    if (newer) {
      setOrder(group, row);
    }
  }

  private void takeBack(InternalRow row, byte kind) {
    if (!filled) {
      begin(row);
      filled = true;
      newest = row;
    }
    if (plan.ignoreDelete()) {
      return;
    }
    newest = row;
    if (!plan.groups().isEmpty()) {
      takeBackInGroups(row, kind);
    } else if (!plan.removeOnDelete()) {
      throw new IllegalArgumentException(
          "a row of kind -U or -D is in a table with merge engine 'partial-update' that has no"
              + " sequence groups, nor 'partial-update.remove-record-on-delete', nor"
              + " 'ignore-delete'");
    } else if (kind == DELETE) {
      removed = true;
      begin(row);
    }
  }

  private void takeBackInGroups(InternalRow row, byte kind) {
    for (Group group : groups) {
      if (kind == DELETE && group.removes() && touches(group, row) && isNewest(group, row)) {
        removed = true;
        begin(row);
        return;
      }
    }
    for (Group group : groups) {
      if (touches(group, row)) {
        boolean newer = isNewest(group, row);
        for (Field field : group.fields()) {
          takeBack(field, row, !newer);
        }
        if (newer) {
          setOrder(group, row);
        }
      }
    }
  }

  private void setOrder(Group group, InternalRow row) {
    for (int at : group.order()) {
      values[at] = read(row, at);
    }
  }

  private static boolean touches(Group group, InternalRow row) {
    for (int at : group.order()) {
      if (!row.isNullAt(at)) {
        return true;
      }
    }
    return false;
  }

  private boolean isNewest(Group group, InternalRow row) {
    for (int at : group.order()) {
      int order = Order.compare(read(row, at), values[at]);
      if (order != 0) {
        return order > 0;
      }
    }
    return true;
  }
}

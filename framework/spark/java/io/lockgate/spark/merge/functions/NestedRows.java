package io.lockgate.spark.merge.functions;

import io.lockgate.spark.merge.MergePlan;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** Rows inside an array, by a key of their own: set as a whole, or only what is not null. */
final class NestedRows extends ColumnFunction {
  private final StructType row;
  private final int[] key;
  private final int[] sequence;
  private final boolean partly;

  NestedRows(MergePlan.Column plan, DataType type) {
    super(plan);
    this.row = (StructType) ((ArrayType) type).elementType();
    this.key = plan.nestedKey().stream().mapToInt(row::fieldIndex).toArray();
    this.sequence = plan.nestedSequence().stream().mapToInt(row::fieldIndex).toArray();
    this.partly = plan.function().equals("nested_partial_update");
  }

  @Override
  public Object add(Object value, Object newer) {
    if (newer == null) {
      return value;
    } else if (partly) {
      return updated(value, newer);
    } else if (key.length == 0) {
      return appended(value, newer);
    }
    Map<Object, InternalRow> all = new LinkedHashMap<>();
    set(all, rows(value), Integer.MAX_VALUE);
    set(all, rows(newer), plan().limit());
    return new GenericArrayData(all.values().toArray());
  }

  private Object appended(Object value, Object newer) {
    int size = value == null ? 0 : ((ArrayData) value).numElements();
    if (value != null && size >= plan().limit()) {
      return value;
    }
    List<InternalRow> all = rows(value);
    List<InternalRow> fresh = rows(newer);
    all.addAll(fresh.subList(0, Math.max(Math.min(fresh.size(), plan().limit() - size), 0)));
    return new GenericArrayData(all.toArray());
  }

  private void set(Map<Object, InternalRow> all, List<InternalRow> rows, int limit) {
    for (InternalRow each : rows) {
      if (hasKey(each)) {
        Object token = token(each);
        InternalRow previous = all.get(token);
        if (previous == null ? all.size() < limit : !isOlder(each, previous)) {
          all.put(token, each);
        }
      }
    }
  }

  private Object updated(Object value, Object newer) {
    List<InternalRow> rows = rows(value);
    rows.addAll(rows(newer));
    Map<Object, InternalRow> all = new LinkedHashMap<>();
    for (InternalRow each : rows) {
      if (hasKey(each)) {
        InternalRow merged =
            all.computeIfAbsent(token(each), token -> new GenericInternalRow(row.length()));
        for (int i = 0; i < row.length(); i++) {
          if (!each.isNullAt(i)) {
            merged.update(i, each.get(i, row.apply(i).dataType()));
          }
        }
      }
    }
    return new GenericArrayData(all.values().toArray());
  }

  @Override
  public Object retract(Object value, Object gone) {
    if (partly) {
      throw plan().noRetract();
    }
    if (value == null || gone == null) {
      return value;
    }
    return new GenericArrayData(
        key.length == 0
            ? withoutEqual(rows(value), rows(gone))
            : withoutKeys(rows(value), rows(gone)));
  }

  private Object[] withoutEqual(List<InternalRow> rows, List<InternalRow> gone) {
    Set<Object> tokens = new HashSet<>();
    gone.forEach(each -> tokens.add(Frozen.of(each, row)));
    rows.removeIf(each -> tokens.contains(Frozen.of(each, row)));
    return rows.toArray();
  }

  private Object[] withoutKeys(List<InternalRow> rows, List<InternalRow> gone) {
    Map<Object, InternalRow> all = new LinkedHashMap<>();
    rows.stream().filter(this::hasKey).forEach(each -> all.put(token(each), each));
    gone.stream().filter(this::hasKey).forEach(each -> all.remove(token(each)));
    return all.values().toArray();
  }

  private List<InternalRow> rows(Object value) {
    List<InternalRow> all = new ArrayList<>();
    if (value != null) {
      ArrayData array = (ArrayData) value;
      for (int i = 0; i < array.numElements(); i++) {
        if (!array.isNullAt(i)) {
          all.add(array.getStruct(i, row.length()));
        }
      }
    }
    return all;
  }

  private Object token(InternalRow each) {
    List<Object> token = new ArrayList<>();
    for (int at : key) {
      token.add(Frozen.field(each, at, row));
    }
    return token;
  }

  private boolean hasKey(InternalRow each) {
    boolean whole = java.util.Arrays.stream(key).noneMatch(each::isNullAt);
    if (whole || plan().nullKeys().equals("merge")) {
      return true;
    } else if (plan().nullKeys().equals("ignore")) {
      return false;
    }
    throw new IllegalArgumentException(
        "column '"
            + plan().name()
            + "': a nested row has a null in its key "
            + String.join(", ", plan().nestedKey())
            + ", which option 'fields."
            + plan().name()
            + ".nested-key-null-strategy' = 'error' forbids");
  }

  private boolean isOlder(InternalRow each, InternalRow than) {
    for (int at : sequence) {
      DataType type = row.apply(at).dataType();
      int order =
          Order.compare(
              each.isNullAt(at) ? null : each.get(at, type),
              than.isNullAt(at) ? null : than.get(at, type));
      if (order != 0) {
        return order < 0;
      }
    }
    return false;
  }
}
